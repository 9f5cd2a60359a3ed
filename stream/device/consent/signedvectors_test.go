package consent_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/internal/test/vectors"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/wire"
)

// recordFile holds records as they are on the broker, read by a device that agreed to the task.
type recordFile struct {
	Task       hexed          `json:"task"` // body of the task that the device agreed to
	TaskHash   hexed          `json:"task_hash"`
	LearnerKey hexed          `json:"learner_key"`
	StageKey   hexed          `json:"stage_key"`
	Manifest   hexed          `json:"manifest_hash"` // of the round that opens, claims and closes are read for
	Records    []recordVector `json:"records"`
}

// signedFile is docs/vectors/signed.json.
type signedFile struct {
	recordFile
	Operators operators `json:"operators"` // records of a task of two operators
	Leases    []lease   `json:"leases"`
	Requests  []request `json:"place_requests"`
	Answers   []answer  `json:"place_answers"`
	Subjects  []subject `json:"subjects"`
}

type recordVector struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Record  hexed  `json:"record"`
	// Prefix holds what the signature of an accepted record is over before the body.
	Prefix  hexed  `json:"prefix,omitempty"`
	Refused string `json:"refused,omitempty"`
	Hash    hexed  `json:"accepted,omitempty"` // SHA-256 of the body; of Open and Join of two operators of the record
}

type lease struct {
	Record   hexed  `json:"record"`
	Refused  string `json:"refused,omitempty"`
	Instance hexed  `json:"instance,omitempty"`
	TTL      int64  `json:"ttl_ms"`
	Newest   uint64 `json:"newest"`
}

type request struct {
	Record  hexed  `json:"record"`
	Refused string `json:"refused,omitempty"`
	ID      hexed  `json:"id,omitempty"`
	Users   uint32 `json:"users"`
	Charged bool   `json:"charged"`
}

type answer struct {
	Record  hexed  `json:"record"`
	Refused string `json:"refused,omitempty"`
	ID      hexed  `json:"id,omitempty"`
	Verdict uint8  `json:"verdict"`
	Users   uint32 `json:"users"`
	Time    int64  `json:"time_ms"`
}

type subject struct {
	Subject string `json:"subject"`
	Refused string `json:"refused,omitempty"`
	Task    string `json:"task,omitempty"`
	Verb    string `json:"verb,omitempty"`
	Round   uint64 `json:"round"`
	Attempt uint64 `json:"attempt"`
}

// sealed returns the envelope of a body, which change may change before it is encoded.
func sealed(t *testing.T, k ed25519.PrivateKey, m proto.Message, change func(*wire.Signed)) []byte {
	t.Helper()
	body := marshal(t, m)
	s := &wire.Signed{Version: stream.Version, Kind: stream.KindOf(m), Body: body, Key: public(k)}
	s.Signature = ed25519.Sign(k, append(prefixOf(m), body...))
	if change != nil {
		change(s)
	}
	return marshal(t, s)
}

func prefixOf(m proto.Message) []byte {
	kind := strings.ToLower(strings.TrimPrefix(stream.KindOf(m).String(), "KIND_"))
	return []byte("panlearn/v1/" + kind + "\x00")
}

// A signedScene is the messages that the vectors of records are made of.
type signedScene struct {
	t         *testing.T
	agreement *consent.Agreement
	manifest  stream.Hash
	task      *wire.Task
	round     *wire.Round
	open      *wire.Open
	claim     *wire.Claim
	closing   *wire.Close
	end       *wire.End
}

// newSignedScene makes the messages of a task and of its second round, whose attempt keeps places for a time if it is
// above 0.
func newSignedScene(t *testing.T, places time.Duration) *signedScene {
	s := &signedScene{t: t, task: provedTask(t, accounting.Shuffle)}
	s.task.Plan.Places = places > 0
	var err error
	s.agreement, err = consent.Policy{}.CheckTask(s.task, stream.HashOf(marshal(t, s.task)))
	must(t, err)
	hash := s.agreement.Hash[:]
	s.round = roundOf("shuffle", s.agreement.Hash, 2)
	s.manifest = stream.HashOf(marshal(t, s.round))
	instance := bytes.Repeat([]byte{7}, stream.InstanceSize)
	point := append([]byte{9}, make([]byte, 31)...) // the base point of X25519
	s.open = &wire.Open{Version: 1, TaskHash: hash, Round: 2, Attempt: 1, ManifestHash: s.manifest[:],
		Suite: wire.Suite_SUITE_X25519, PublicKey: point, Instance: instance, StartedUnixMs: 1700000000000,
		JoinProbability: 1 << 31, JoinDoublingMs: 1000,
		PlacesMs: uint32(places.Milliseconds())}
	s.claim = &wire.Claim{Version: 1, TaskHash: hash, Round: 2, Attempt: 1, ManifestHash: s.manifest[:],
		Instance: instance}
	s.closing = &wire.Close{Version: 1, TaskHash: hash, Round: 2, Attempt: 1, ManifestHash: s.manifest[:],
		BatchHash: make([]byte, 32), Cutoff: 300}
	s.end = &wire.End{Version: 1, TaskHash: hash, LastRound: 3, Reason: "done"}
	return s
}

// file returns records with what they are read by.
func (s *signedScene) file(records []recordVector) recordFile {
	return recordFile{Task: marshal(s.t, s.task), TaskHash: s.agreement.Hash[:], LearnerKey: public(learnerKey),
		StageKey: public(stageKey), Manifest: s.manifest[:], Records: records}
}

// A signedMessage is a message of the scene, with its subject and the key that signs it.
type signedMessage struct {
	subject string
	key     ed25519.PrivateKey
	m       proto.Message
}

func (s *signedScene) messages() []signedMessage {
	return []signedMessage{{"task", learnerKey, s.task}, {"round.2", learnerKey, s.round}, {"open.2.1", stageKey, s.open},
		{"claim.2", stageKey, s.claim}, {"close.2.1", stageKey, s.closing}, {"end", learnerKey, s.end}}
}

// read does what a device does with a record that it read or that a wake brought.
func (s *signedScene) read(v recordVector) (stream.Hash, error) {
	got := stream.Message{Subject: v.Subject, Data: v.Record}
	a := s.agreement
	body := func(err error) (stream.Hash, error) {
		var envelope wire.Signed
		if err == nil {
			err = stream.Unmarshal(v.Record, &envelope)
		}
		return stream.HashOf(envelope.Body), err
	}
	switch verb := strings.Split(v.Subject, ".")[2]; verb {
	case "task":
		_, hash, err := consent.ReadTask("churn", got)
		return hash, err
	case "round":
		_, hash, err := a.ReadRound(got)
		return hash, err
	case "open":
		_, hash, err := a.ReadOpen(got, s.manifest)
		return hash, err
	case "join":
		_, hash, err := a.ReadJoin(got, s.manifest)
		return hash, err
	case "claim":
		return body(a.ReadClaim(got, s.manifest))
	case "close":
		_, err := a.ReadClose(got, s.manifest)
		return body(err)
	case "end":
		_, err := a.ReadEnd(got)
		return body(err)
	default:
		return stream.Hash{}, fmt.Errorf("no record of %s", verb)
	}
}

// add appends a vector; number is the check that refuses it, empty where it is accepted.
func (s *signedScene) add(out *[]recordVector, number, name, subject string, record []byte, prefix []byte) {
	s.t.Helper()
	v := recordVector{Name: name, Subject: "panlearn.churn." + subject, Record: record, Refused: number}
	hash, err := s.read(v)
	if number != "" {
		vectors.Refused(s.t, name, number, err)
	} else if err != nil {
		s.t.Errorf("%s: %v", name, err)
	} else {
		v.Hash, v.Prefix = hash[:], prefix
	}
	*out = append(*out, v)
}

func (s *signedScene) records() (out []recordVector) {
	t := s.t
	for _, c := range s.messages() {
		kind := strings.Split(c.subject, ".")[0]
		s.add(&out, "", kind, c.subject, sealed(t, c.key, c.m, nil), prefixOf(c.m))
		add := func(number, name string, record []byte) {
			s.add(&out, number, kind+": "+name, c.subject, record, nil)
		}
		good := sealed(t, c.key, c.m, nil)
		add("S1", "cut off", good[:len(good)-1])
		add("S2", "of version 2", sealed(t, c.key, c.m, func(e *wire.Signed) { e.Version = 2 }))
		add("S3", "an unknown field", append(bytes.Clone(good), 6<<3, 1))
		add("S3", "a version in two bytes", append([]byte{1 << 3, 0x81, 0}, good[2:]...))
		add("S3", "the kind before the version", append(append(bytes.Clone(good[2:4]), good[:2]...), good[4:]...))
		add("S4", "a short key", sealed(t, c.key, c.m, func(e *wire.Signed) { e.Key = e.Key[1:] }))
		add("S4", "a short signature", sealed(t, c.key, c.m, func(e *wire.Signed) { e.Signature = e.Signature[1:] }))
		add("S5", "another kind", sealed(t, c.key, c.m, func(e *wire.Signed) { e.Kind = wire.Kind_KIND_BATCH }))
		if kind == "task" {
			add("S8", "signed by another than it names", sealed(t, stageKey, c.m, nil))
		} else {
			add("S6", "signed by another", sealed(t, key(3), c.m, nil))
		}
		add("S7", "a signature that is changed", sealed(t, c.key, c.m, func(e *wire.Signed) { e.Signature[0] ^= 1 }))
		add("S7", "signed without the prefix", sealed(t, c.key, c.m, func(e *wire.Signed) {
			e.Signature = ed25519.Sign(c.key, e.Body)
		}))
		add("S7", "signed as a batch", sealed(t, c.key, c.m, func(e *wire.Signed) {
			e.Signature = ed25519.Sign(c.key, append([]byte("panlearn/v1/batch\x00"), e.Body...))
		}))
		resigned := func(change func([]byte) []byte) []byte {
			return sealed(t, c.key, c.m, func(e *wire.Signed) {
				e.Body = change(e.Body)
				e.Signature = ed25519.Sign(c.key, append(prefixOf(c.m), e.Body...))
			})
		}
		add("S1", "a body that is cut off", resigned(func(b []byte) []byte { return b[:len(b)-1] }))
		add("S2", "a body of version 3", resigned(func(b []byte) []byte { b[1] = 3; return b }))
		add("S3", "an unknown field in the body", resigned(func(b []byte) []byte { return append(b, 0x78, 1) }))
		add("S3", "an empty field in the body", resigned(func(b []byte) []byte { return append(b, 0x7a, 0) }))
	}
	s.bodies(&out)
	return out
}

// bodies adds the records whose body is refused, or does not belong.
func (s *signedScene) bodies(out *[]recordVector) {
	t := s.t
	task := func(number, name, subject string, change func(*wire.Task)) {
		m := proto.CloneOf(s.task)
		change(m)
		s.add(out, number, "task: "+name, subject, sealed(t, learnerKey, m, nil), nil)
	}
	task("S9", "of another name", "task", func(m *wire.Task) { m.Name = "other" })
	task("B6", "a short life", "task", func(m *wire.Task) { m.Life = m.Life[1:] })
	round := func(number, name, subject string, change func(*wire.Round)) {
		m := proto.CloneOf(s.round)
		change(m)
		s.add(out, number, "round: "+name, subject, sealed(t, learnerKey, m, nil), nil)
	}
	round("S10", "of another number than its subject", "round.3", func(*wire.Round) {})
	round("S11", "of another task", "round.2", func(m *wire.Round) { m.TaskHash = make([]byte, 32) })
	round("B27", "0", "round.2", func(m *wire.Round) { m.Round = 0 })
	open := func(number, name, subject string, change func(*wire.Open)) {
		m := proto.CloneOf(s.open)
		change(m)
		s.add(out, number, "open: "+name, subject, sealed(t, stageKey, m, nil), nil)
	}
	open("S10", "of another attempt than its subject", "open.2.2", func(*wire.Open) {})
	open("S10", "of another round than its subject", "open.3.1", func(*wire.Open) {})
	open("S11", "of another task", "open.2.1", func(m *wire.Open) { m.TaskHash = make([]byte, 32) })
	open("S12", "of another suite than the task", "open.2.1", func(m *wire.Open) {
		m.Suite, m.PublicKey = wire.Suite_SUITE_NONE, nil
	})
	open("S13", "of another round of this number", "open.2.1", func(m *wire.Open) { m.ManifestHash = make([]byte, 32) })
	open("S14", "a short key", "open.2.1", func(m *wire.Open) { m.PublicKey = m.PublicKey[1:] })
	open("S14", "no key", "open.2.1", func(m *wire.Open) { m.PublicKey = nil })
	open("S15", "with places, which the plan does not have", "open.2.1", func(m *wire.Open) { m.PlacesMs = 8000 })
	open("B8", "no suite", "open.2.1", func(m *wire.Open) { m.Suite = 0 })
	open("B26", "a short task hash", "open.2.1", func(m *wire.Open) { m.TaskHash = m.TaskHash[1:] })
	open("B27", "round 0", "open.2.1", func(m *wire.Open) { m.Round = 0 })
	open("B31", "attempt 0", "open.2.1", func(m *wire.Open) { m.Attempt = 0 })
	open("B32", "a short manifest hash", "open.2.1", func(m *wire.Open) { m.ManifestHash = m.ManifestHash[1:] })
	open("B33", "no instance", "open.2.1", func(m *wire.Open) { m.Instance = nil })
	claim := func(number, name string, change func(*wire.Claim)) {
		m := proto.CloneOf(s.claim)
		change(m)
		s.add(out, number, "claim: "+name, "claim.2", sealed(t, stageKey, m, nil), nil)
	}
	claim("S10", "of another round than its subject", func(m *wire.Claim) { m.Round = 3 })
	claim("S11", "of another task", func(m *wire.Claim) { m.TaskHash = make([]byte, 32) })
	claim("S13", "of another round of this number", func(m *wire.Claim) { m.ManifestHash = make([]byte, 32) })
	claim("B31", "attempt 0", func(m *wire.Claim) { m.Attempt = 0 })
	claim("B33", "a long instance", func(m *wire.Claim) { m.Instance = append(m.Instance, 0) })
	claim("S16", "by the hashes of two operators", func(m *wire.Claim) {
		m.OpenHash, m.JoinHash = make([]byte, 32), make([]byte, 32)
	})
	claim("B38", "a short hash of a Join", func(m *wire.Claim) {
		m.OpenHash, m.JoinHash = make([]byte, 32), make([]byte, 31)
	})
	closing := func(number, name string, change func(*wire.Close)) {
		m := proto.CloneOf(s.closing)
		change(m)
		s.add(out, number, "close: "+name, "close.2.1", sealed(t, stageKey, m, nil), nil)
	}
	closing("S10", "of another attempt than its subject", func(m *wire.Close) { m.Attempt = 2 })
	closing("S11", "of another task", func(m *wire.Close) { m.TaskHash = make([]byte, 32) })
	closing("S13", "of another round of this number", func(m *wire.Close) { m.ManifestHash = make([]byte, 32) })
	closing("B32", "no manifest hash", func(m *wire.Close) { m.ManifestHash = nil })
	closing("B34", "a short batch hash", func(m *wire.Close) { m.BatchHash = m.BatchHash[1:] })
	closing("S16", "by the hashes of two operators", func(m *wire.Close) {
		m.OpenHash, m.JoinHash = make([]byte, 32), make([]byte, 32)
	})
	closing("B38", "no hash of an Open", func(m *wire.Close) { m.JoinHash = make([]byte, 32) })
	end := func(number, name string, change func(*wire.End)) {
		m := proto.CloneOf(s.end)
		change(m)
		s.add(out, number, "end: "+name, "end", sealed(t, learnerKey, m, nil), nil)
	}
	end("S11", "of another task", func(m *wire.End) { m.TaskHash = make([]byte, 32) })
	end("B26", "no task hash", func(m *wire.End) { m.TaskHash = nil })
	end("B35", "a reason of 65 letters", func(m *wire.End) { m.Reason = strings.Repeat("a", 65) })
}

// TestSignedVectors reads the records of the vectors as a device does, and compares them with the file.
func TestSignedVectors(t *testing.T) {
	s := newSignedScene(t, 0)
	file := signedFile{recordFile: s.file(s.records()), Leases: leases(t), Requests: requests(t), Answers: answers(t),
		Subjects: subjects(t), Operators: operatorsOf(t)}
	golden.JSON(t, filepath.Join(vectorFolder, "signed.json"), file, 0)
}
