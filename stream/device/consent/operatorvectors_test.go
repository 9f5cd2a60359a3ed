package consent_test

import (
	"bytes"
	"crypto/hpke"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/test/vectors"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/wire"
)

// operators holds records of a task of two operators, and pairs of an Open and a Join.
type operators struct {
	recordFile
	HelperKey hexed        `json:"helper_key"`
	Pairs     []pairVector `json:"pairs"`
}

// pairVector is an Open and a Join that were read, each by itself.
type pairVector struct {
	Name    string `json:"name"`
	Open    hexed  `json:"open"`
	Join    hexed  `json:"join"`
	Refused string `json:"refused,omitempty"`
}

// newSplitScene makes the messages of a task of two operators.
func newSplitScene(t *testing.T) (*signedScene, *wire.Join) {
	s := newSignedScene(t, 0)
	s.task = splitTask(t)
	var err error
	hash := stream.HashOf(marshal(t, s.task))
	s.agreement, err = consent.Policy{TaskHash: hash[:]}.CheckTask(s.task, hash)
	must(t, err)
	s.round.TaskHash = hash[:]
	s.manifest = stream.HashOf(marshal(t, s.round))
	fixed := func(first byte) []byte {
		k, err := hpke.MLKEM768X25519().NewPrivateKey(bytes.Repeat([]byte{first}, 32))
		must(t, err)
		return k.PublicKey().Bytes()
	}
	s.open.TaskHash, s.open.ManifestHash = hash[:], s.manifest[:]
	s.open.Suite, s.open.PublicKey = wire.Suite_SUITE_MLKEM768_X25519, fixed(1)
	opened := stream.HashOf(sealed(t, stageKey, s.open, nil))
	j := &wire.Join{Version: 1, TaskHash: hash[:], Round: 2, Attempt: 1, ManifestHash: s.manifest[:], OpenHash: opened[:],
		Suite: s.open.Suite, PublicKey: fixed(2), Instance: bytes.Repeat([]byte{8}, stream.InstanceSize),
		VerifyKeyHash: bytes.Repeat([]byte{3}, 32), KeyEncapsulated: bytes.Repeat([]byte{4}, 1120),
		KeyCiphertext: bytes.Repeat([]byte{5}, 48), StartedUnixMs: 1700000001000}
	joined := stream.HashOf(sealed(t, helperKey, j, nil))
	s.claim.TaskHash, s.claim.ManifestHash, s.claim.OpenHash, s.claim.JoinHash = hash[:], s.manifest[:], opened[:], joined[:]
	s.closing.TaskHash, s.closing.ManifestHash = hash[:], s.manifest[:]
	s.closing.OpenHash, s.closing.JoinHash = opened[:], joined[:]
	return s, j
}

func operatorsOf(t *testing.T) operators {
	s, j := newSplitScene(t)
	var out []recordVector
	put := func(number, name, subject string, record []byte, m proto.Message) {
		s.add(&out, number, name, subject, record, prefixOf(m))
	}
	put("", "open", "open.2.1", sealed(t, stageKey, s.open, nil), s.open)
	put("", "join", "join.2.1", sealed(t, helperKey, j, nil), j)
	put("", "claim", "claim.2", sealed(t, stageKey, s.claim, nil), s.claim)
	put("", "close", "close.2.1", sealed(t, stageKey, s.closing, nil), s.closing)
	put("S6", "join: signed by the leader", "join.2.1", sealed(t, stageKey, j, nil), j)
	put("S7", "join: a signature that is changed", "join.2.1", sealed(t, helperKey, j, func(e *wire.Signed) {
		e.Signature[0] ^= 1
	}), j)
	put("S6", "open: signed by the helper", "open.2.1", sealed(t, helperKey, s.open, nil), s.open)
	put("S5", "join: an Open on its subject", "join.2.1", sealed(t, helperKey, s.open, nil), s.open)
	join := func(number, name, subject string, change func(*wire.Join)) {
		m := proto.CloneOf(j)
		change(m)
		put(number, "join: "+name, subject, sealed(t, helperKey, m, nil), m)
	}
	join("S10", "of another attempt than its subject", "join.2.2", func(*wire.Join) {})
	join("S10", "of another round than its subject", "join.3.1", func(*wire.Join) {})
	join("S11", "of another task", "join.2.1", func(m *wire.Join) { m.TaskHash = make([]byte, 32) })
	join("S12", "of another suite than the task", "join.2.1", func(m *wire.Join) {
		m.Suite, m.PublicKey = wire.Suite_SUITE_X25519, append([]byte{9}, make([]byte, 31)...)
	})
	join("S13", "of another round of this number", "join.2.1", func(m *wire.Join) { m.ManifestHash = make([]byte, 32) })
	join("S14", "a short key", "join.2.1", func(m *wire.Join) { m.PublicKey = m.PublicKey[1:] })
	join("B8", "no suite", "join.2.1", func(m *wire.Join) { m.Suite = 0 })
	join("B26", "a short task hash", "join.2.1", func(m *wire.Join) { m.TaskHash = m.TaskHash[1:] })
	join("B27", "round 0", "join.2.1", func(m *wire.Join) { m.Round = 0 })
	join("B31", "attempt 0", "join.2.1", func(m *wire.Join) { m.Attempt = 0 })
	join("B32", "a short manifest hash", "join.2.1", func(m *wire.Join) { m.ManifestHash = m.ManifestHash[1:] })
	join("B33", "no instance", "join.2.1", func(m *wire.Join) { m.Instance = nil })
	join("B39", "no hash of an Open", "join.2.1", func(m *wire.Join) { m.OpenHash = nil })
	join("B39", "a short hash of the verify key", "join.2.1", func(m *wire.Join) { m.VerifyKeyHash = m.VerifyKeyHash[1:] })
	join("B40", "no verify key", "join.2.1", func(m *wire.Join) { m.KeyCiphertext = nil })
	join("B41", "without encryption", "join.2.1", func(m *wire.Join) { m.Suite, m.PublicKey = wire.Suite_SUITE_NONE, nil })
	for _, m := range []interface {
		proto.Message
		GetJoinHash() []byte
	}{s.claim, s.closing} {
		of, subject, name := proto.Clone(m), "claim.2", "claim: by its number alone"
		if c, ok := of.(*wire.Claim); ok {
			c.OpenHash, c.JoinHash = nil, nil
		} else {
			c := of.(*wire.Close)
			c.OpenHash, c.JoinHash, subject, name = nil, nil, "close.2.1", "close: by its number alone"
		}
		put("S16", name, subject, sealed(t, stageKey, of, nil), of)
	}
	file := operators{recordFile: s.file(out), HelperKey: public(helperKey)}
	pair := func(number, name string, change func(*wire.Open, *wire.Join)) {
		o, j := proto.CloneOf(s.open), proto.CloneOf(j)
		if change != nil {
			change(o, j)
		}
		v := pairVector{Name: name, Open: sealed(t, stageKey, o, nil), Join: sealed(t, helperKey, j, nil), Refused: number}
		if err := consent.CheckPair(o, stream.HashOf(v.Open), j); number != "" {
			vectors.Refused(t, name, number, err)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		file.Pairs = append(file.Pairs, v)
	}
	pair("", "one attempt", nil)
	pair("S17", "the join of another open of this number", func(o *wire.Open, _ *wire.Join) { o.StartedUnixMs++ })
	pair("S17", "the hash of the open's body", func(o *wire.Open, j *wire.Join) {
		body := stream.HashOf(marshal(t, o))
		j.OpenHash = body[:]
	})
	pair("S17", "another attempt", func(_ *wire.Open, j *wire.Join) { j.Attempt++ })
	pair("S18", "one key of two parties", func(o *wire.Open, j *wire.Join) { j.PublicKey = o.PublicKey })
	return file
}

// TestJoinOfNoHelper: a task of one operator has no Join, not even one that is signed.
func TestJoinOfNoHelper(t *testing.T) {
	_, j := newSplitScene(t)
	s := newSignedScene(t, 0)
	j.TaskHash, j.ManifestHash = s.agreement.Hash[:], s.manifest[:]
	_, _, err := s.agreement.ReadJoin(stream.Message{Subject: "panlearn.churn.join.2.1", Data: sealed(t, helperKey, j, nil)},
		s.manifest)
	if err == nil {
		t.Error("a task of one operator reads a Join")
	}
}
