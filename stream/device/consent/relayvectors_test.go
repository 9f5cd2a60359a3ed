package consent_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/internal/test/vectors"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
	"github.com/panlearn/panlearn/stream/wire"
)

// relayFile is docs/vectors/relay.json: the records of a task whose attempts give places, and the bodies that a relay and
// a device exchange about them.
type relayFile struct {
	recordFile
	States []stateBody `json:"states"`
	// OperatorStates are of a task of two operators: version 2, with a mark of a Join.
	OperatorStates []stateBody  `json:"operator_states"`
	Places         []placeBody  `json:"places"`
	Reports        []reportBody `json:"reports"`
	Answers        []reportSaid `json:"report_answers"`
}

// A stateBody is the body of the answer about what is newest, and what it says.
type stateBody struct {
	Name    string `json:"name"`
	Body    hexed  `json:"body"`
	Refused string `json:"refused,omitempty"`
	Tag     string `json:"tag,omitempty"`
	// Marks are of Task, End, Round, Open, Claim and Close, and of version 2 of the Join.
	Marks       []mark `json:"marks,omitempty"`
	LeaseTime   uint64 `json:"lease_stored_unix_ns,string"`
	LeaseRecord hexed  `json:"lease"`
}

type mark struct {
	Round    uint64 `json:"round"`
	Attempt  uint64 `json:"attempt"`
	Sequence uint64 `json:"sequence"`
	Hash     hexed  `json:"hash"`
}

// A placeBody is the body of a POST of a request for places, and its answer.
type placeBody struct {
	Body    hexed  `json:"body"`
	Round   uint64 `json:"round"`
	Attempt uint64 `json:"attempt"`
	Request hexed  `json:"request"`
	ID      hexed  `json:"id"`
	Users   uint32 `json:"users"`
	Charged bool   `json:"charged"`
	Answer  hexed  `json:"answer"`
	Verdict uint8  `json:"verdict"`
	Granted uint32 `json:"granted"`
	Time    int64  `json:"time_ms"`
}

// A reportBody is the body of a POST of a report.
type reportBody struct {
	Body    hexed  `json:"body"`
	Round   uint64 `json:"round"`
	Attempt uint64 `json:"attempt"`
	Open    hexed  `json:"open"` // hash of the body of its Open
	ID      hexed  `json:"message_id"`
	Report  hexed  `json:"report"`
}

// A reportSaid is the body of the answer to a report.
type reportSaid struct {
	Body     hexed  `json:"body"`
	Refused  string `json:"refused,omitempty"`
	ID       hexed  `json:"message_id,omitempty"`
	Status   uint8  `json:"status"`
	Sequence uint64 `json:"sequence"`
	Reason   uint8  `json:"reason"`
}

// good returns the messages of the scene as records that are accepted.
func (s *signedScene) good() (out []recordVector) {
	for _, c := range s.messages() {
		s.add(&out, "", strings.Split(c.subject, ".")[0], c.subject, sealed(s.t, c.key, c.m, nil), prefixOf(c.m))
	}
	return out
}

// states makes the states of the records, of which the broker has the first ones: a round that is open, and one that is
// closed in a task that has ended.
func (s *signedScene) states(records []recordVector) (out []stateBody) {
	t := s.t
	of := func(i int) relayhttp.Mark {
		a, err := stream.ParseSubject(records[i].Subject)
		must(t, err)
		return relayhttp.Mark{Round: a.Round, Attempt: a.Attempt, Sequence: uint64(i) + 300,
			Hash: relayhttp.HashOf(records[i].Record)}
	}
	held := stream.Lease{Instance: [16]byte(sixteen(7)), TTL: 10 * time.Second, Newest: 2}.Record()
	open := relayhttp.State{Task: of(0), Round: of(1), Open: of(2), LeaseTime: time.Unix(0, 1700000000123456789), Lease: held}
	over := relayhttp.State{Task: of(0), Round: of(1), Open: of(2), Claim: of(3), Close: of(4), End: of(5)}
	change := func(at int, b byte) []byte {
		body := open.Bytes()
		body[at] = b
		return body
	}
	return stateBodies(t, []stateCase{{"", "a round that is open", open.Bytes()}, {"", "a task that has ended, without a lease", over.Bytes()},
		{"", "nothing yet", (&relayhttp.State{}).Bytes()}, {"L5", "cut off", over.Bytes()[:344]},
		{"L5", "of version 3", change(0, 3)}, {"L5", "an End with a hash and no sequence", change(1+56+24, 1)},
		{"L5", "a Claim of a round and without a sequence", change(1+4*56+7, 2)}, {"L5", "empty", nil}})
}

// A stateCase is a body, and the number of the check that refuses it.
type stateCase struct {
	number, name string
	body         []byte
}

// pairedStates makes states of an attempt of two operators.
func pairedStates(t *testing.T) []stateBody {
	s, j := newSplitScene(t)
	of := func(sequence uint64, record []byte) relayhttp.Mark {
		return relayhttp.Mark{Round: 2, Attempt: 1, Sequence: sequence, Hash: relayhttp.HashOf(record)}
	}
	open := relayhttp.State{Task: relayhttp.Mark{Sequence: 1, Hash: relayhttp.HashOf(sealed(t, learnerKey, s.task, nil))},
		Open: of(7, sealed(t, stageKey, s.open, nil)), Join: of(3, sealed(t, helperKey, j, nil))}
	body := open.Bytes()
	none := bytes.Clone(body)
	clear(none[1+6*56 : 1+7*56])
	return stateBodies(t, []stateCase{{"", "an attempt of two operators", body}, {"L5", "version 2 without a Join", none},
		{"L5", "version 2, cut off", body[:400]}})
}

func stateBodies(t *testing.T, cases []stateCase) (out []stateBody) {
	for _, c := range cases {
		v := stateBody{Name: c.name, Body: c.body, Refused: c.number}
		got, err := relayhttp.ParseState(c.body)
		if c.number != "" {
			vectors.Refused(t, c.name, c.number, err)
		} else {
			must(t, err)
			v.Tag, v.LeaseRecord = got.Tag(), got.Lease
			marks := got.Marks()
			if c.body[0] == 1 {
				marks = marks[:6]
			}
			for _, m := range marks {
				v.Marks = append(v.Marks, mark{uint64(m.Round), uint64(m.Attempt), m.Sequence, m.Hash[:]})
			}
			if !got.LeaseTime.IsZero() {
				v.LeaseTime = uint64(got.LeaseTime.UnixNano())
			}
		}
		out = append(out, v)
	}
	return out
}

// placeBodies are requests for places in the attempt of the scene, the second of users whom an earlier one has charged.
func placeBodies(t *testing.T) (out []placeBody) {
	granted := stream.PlaceAnswer{ID: [16]byte(sixteen(3)), Verdict: stream.PlaceGranted, Users: 1, Time: 8 * time.Second}
	wait := stream.PlaceAnswer{ID: [16]byte(sixteen(4)), Verdict: stream.PlaceWait, Time: 1500 * time.Millisecond}
	over := stream.PlaceAnswer{ID: [16]byte(sixteen(5)), Verdict: stream.PlaceOver}
	for i, a := range []stream.PlaceAnswer{granted, wait, over} {
		r := stream.PlaceRequest{ID: a.ID, Users: uint32(i*i*99) + 1, Charged: i == 1}
		body := relayhttp.Place{Round: 2, Attempt: 1, Request: r.Record()}.Bytes()
		got, err := relayhttp.ParsePlace(body)
		must(t, err)
		out = append(out, placeBody{Body: body, Round: uint64(got.Round), Attempt: uint64(got.Attempt), Request: got.Request,
			ID: r.ID[:], Users: r.Users, Charged: r.Charged, Answer: a.Record(), Verdict: uint8(a.Verdict), Granted: a.Users,
			Time: a.Time.Milliseconds()})
	}
	return out
}

// reportBodies are posts of reports that open to nothing: vectors of sealing are in seal.json.
func (s *signedScene) reportBodies() (out []reportBody) {
	open := stream.HashOf(marshal(s.t, s.open))
	for _, users := range []byte{1, 2} {
		r := &wire.Report{Version: stream.Version, TaskHash: s.agreement.Hash[:], Encapsulated: s.open.PublicKey,
			Ciphertext: bytes.Repeat([]byte{0xc0 + users}, int(users)*4+16)}
		for i := range users {
			r.Ids = append(r.Ids, sixteen(0x20*users+i))
		}
		text := binary.BigEndian.AppendUint64(append([]byte("panlearn message id\x00"), r.Ids[0]...), s.open.Attempt)
		id := sha256.Sum256(append(text, open[:]...))
		body := relayhttp.Report{Round: 2, Attempt: 1, ID: [16]byte(id[:]), Data: marshal(s.t, r)}.Bytes()
		got, err := relayhttp.ParseReport(body)
		must(s.t, err)
		out = append(out, reportBody{Body: body, Round: uint64(got.Round), Attempt: uint64(got.Attempt), Open: open[:],
			ID: got.ID[:], Report: got.Data})
	}
	return out
}

// said are responses to a report of this message id.
func said(t *testing.T, id []byte) (out []reportSaid) {
	made := func(status stream.AckStatus, sequence uint64, reason stream.Reason) []byte {
		return relayhttp.Answer{ID: [16]byte(id), Status: status, Sequence: sequence, Reason: reason}.Bytes()
	}
	stored := made(stream.Stored, 258, 0)
	another := bytes.Clone(stored)
	another[0] = 2
	for _, c := range []struct {
		number string
		body   []byte
	}{{"", stored}, {"", made(stream.Duplicate, 258, 0)}, {"", made(stream.Refused, 0, stream.TooLarge)},
		{"", made(stream.Refused, 0, stream.StreamFull)}, {"", made(stream.Refused, 0, stream.AttemptFull)},
		{"", made(stream.Refused, 0, stream.NoRoom)}, {"L6", stored[:26]}, {"L6", append(bytes.Clone(stored), 0)},
		{"L6", another}, {"L6", made(0, 258, 0)}, {"L6", made(4, 258, 0)}, {"L6", made(stream.Stored, 0, 0)},
		{"L6", made(stream.Duplicate, 258, 1)}, {"L6", made(stream.Refused, 258, 1)}, {"L6", nil}} {
		v := reportSaid{Body: c.body, Refused: c.number}
		a, err := relayhttp.ParseAnswer(c.body)
		if c.number != "" {
			vectors.Refused(t, "an answer to a report", c.number, err)
		} else {
			must(t, err)
			v.ID, v.Status, v.Sequence, v.Reason = a.ID[:], uint8(a.Status), a.Sequence, uint8(a.Reason)
		}
		out = append(out, v)
	}
	return out
}

// TestRelayVectors reads the records and bodies of the vectors as a device and a relay do, and compares them with the
// file.
func TestRelayVectors(t *testing.T) {
	s := newSignedScene(t, 8*time.Second)
	records := s.good()
	file := relayFile{recordFile: s.file(records), States: s.states(records), OperatorStates: pairedStates(t), Places: placeBodies(t),
		Reports: s.reportBodies()}
	file.Answers = said(t, file.Reports[0].ID)
	golden.JSON(t, filepath.Join(vectorFolder, "relay.json"), file, 0)
}
