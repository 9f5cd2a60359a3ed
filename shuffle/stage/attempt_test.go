package stage

import (
	"bytes"
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// attempt returns attempt number at round 1 of the world, without a broker, and the invitation to it.
func (w *world) attempt(number stream.Attempt) (*attempt, *invitation) {
	w.t.Helper()
	s := w.new(w.config())
	err := s.enlist(&stream.Message{Subject: w.name.Task(), Data: w.sign(w.learner, w.task)})
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := s.readRound(&stream.Message{Subject: w.name.Round(1), Data: w.sign(w.learner, w.round(1, 1))})
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := newAttempt(s.environment, r, number, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	return a, &invitation{round: 1, attempt: number, suite: w.task.Suite, context: a.opener.context}
}

func (w *world) message(in *invitation, sequence uint64, data []byte) *stream.Message {
	return &stream.Message{Subject: w.name.Report(in.round, in.attempt), Sequence: sequence, Data: data}
}

// TestReasons: each way in which a report can be wrong, alone, is named, and none of them moves a total.
func TestReasons(t *testing.T) {
	w := newWorld(t, plan{cohort: 8, minimum: 1, suite: wire.Suite_SUITE_X25519, bundle: 2})
	a, in := w.attempt(3)
	ids := func(n int) (all [][16]byte) {
		for range n {
			all = append(all, randomID())
		}
		return all
	}
	good := w.plaintext(0)
	counted := ids(1)
	if got := a.examine(w.message(in, 1, w.seal(in, counted, good))); got != Accepted {
		t.Fatalf("a good report: %v", got)
	}
	report := func(change func(*wire.Report)) []byte {
		r, err := seal.Seal(in.suite, in.context, w.hash, ids(1), good)
		if err != nil {
			t.Fatal(err)
		}
		change(r)
		return w.encode(r)
	}
	under := func(change func(*seal.Context)) []byte {
		other := *in
		change(&other.context)
		return w.seal(&other, ids(1), good)
	}
	packed := func(value uint32) []byte {
		b := bytes.Clone(good)
		b[0] = b[0]&^3 | byte(value) // two bits a count
		return b
	}
	same := randomID()
	valid := w.seal(in, ids(1), good)
	for _, c := range []struct {
		name    string
		want    Reason
		subject string
		data    []byte
	}{
		{"another round", WrongRound, w.name.Report(2, 3), valid},
		{"a dead attempt", WrongAttempt, w.name.Report(1, 2), valid},
		{"an attempt to come", WrongAttempt, w.name.Report(1, 4), valid},
		{"a strange subject", Malformed, "panlearn.churn.report.1.03", valid},
		{"another task's subject", Malformed, "panlearn.other.report.1.3", valid},
		{"nothing", Version, "", nil},
		{"noise", Malformed, "", []byte("not a report at all")},
		{"not canonical", Malformed, "", append([]byte{0x08, 0x81, 0x00}, valid[2:]...)}, // a varint of two bytes for 1
		{"huge", Length, "", make([]byte, 1<<16)},
		{"an unknown field", Malformed, "", append(bytes.Clone(valid), 0xf8, 0x7f, 1)},
		{"another version", Version, "", report(func(r *wire.Report) { r.Version++ })},
		{"another task", WrongTask, "", report(func(r *wire.Report) { r.TaskHash = make([]byte, 32) })},
		{"no id", Malformed, "", report(func(r *wire.Report) { r.Ids = nil })},
		{"short id", Malformed, "", report(func(r *wire.Report) { r.Ids[0] = r.Ids[0][1:] })},
		{"three users", Bundle, "", report(func(r *wire.Report) {
			r.Ids = [][]byte{r.Ids[0], r.Ids[0], r.Ids[0]}
			r.Ciphertext = r.Ciphertext[:1] // small enough to be looked at
		})},
		{"short plaintext", Length, "", w.seal(in, ids(1), good[1:])},
		{"long plaintext", Length, "", w.seal(in, ids(1), append(good, 0))},
		{"one report for two users", Length, "", w.seal(in, ids(2), good)},
		{"short key", Length, "", report(func(r *wire.Report) { r.Encapsulated = r.Encapsulated[1:] })},
		{"low-order key", Undecryptable, "", report(func(r *wire.Report) { clear(r.Encapsulated) })},
		{"flipped bit", Undecryptable, "", report(func(r *wire.Report) { r.Ciphertext[0] ^= 1 })},
		{"another id", Undecryptable, "", report(func(r *wire.Report) { r.Ids[0][0] ^= 1 })},
		{"another manifest", Undecryptable, "", under(func(c *seal.Context) { c.ManifestHash[0] ^= 1 })},
		{"sealed for another attempt", Undecryptable, "", under(func(c *seal.Context) { c.Attempt-- })},
		{"another stage", Undecryptable, "", under(func(c *seal.Context) { c.StageKey = w.learner.Public() })},
		{"a count too high", Range, "", w.seal(in, ids(1), packed(3))},
		{"the same id again", Duplicate, "", w.seal(in, counted, good)},
		{"a bundle with a known id", Duplicate, "", w.seal(in, [][16]byte{randomID(), counted[0]}, append(w.plaintext(1),
			good...))},
		{"a bundle of one user twice", Duplicate, "", w.bundleTwice(in, same)},
	} {
		m := w.message(in, 2, c.data)
		if c.subject != "" {
			m.Subject = c.subject
		}
		if got := a.examine(m); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if a.mixer.Users() != 1 {
		t.Fatalf("%d users are counted, want 1", a.mixer.Users())
	}
	// The second half of a refused bundle is no duplicate.
	if got := a.examine(w.message(in, 3, w.seal(in, [][16]byte{same, randomID()}, w.plaintext(1, 2)))); got != Accepted {
		t.Errorf("a good bundle: %v", got)
	}
	a.term.deadline, a.term.started = time.Second, time.Now().Add(-time.Minute)
	out, err := a.close()
	if err != nil {
		t.Fatal(err)
	}
	var b wire.Batch
	if _, err := seal.Verify(out.batch, w.stage.Public(), &b); err != nil {
		t.Fatal(err)
	}
	want := []*wire.Reject{{Reason: "bundle", Count: 1}, {Reason: "duplicate", Count: 3}, {Reason: "length", Count: 5},
		{Reason: "malformed", Count: 7}, {Reason: "range", Count: 1}, {Reason: "undecryptable", Count: 6},
		{Reason: "version", Count: 2}, {Reason: "wrong_attempt", Count: 2}, {Reason: "wrong_round", Count: 1},
		{Reason: "wrong_task", Count: 1}}
	if !proto.Equal(&wire.Batch{Rejects: b.Rejects}, &wire.Batch{Rejects: want}) {
		t.Errorf("rejects %v, want %v", b.Rejects, want)
	}
	if b.Users != 3 || b.NoiseTrials != 8 || b.Cutoff != 3 {
		t.Errorf("users %d, trials %d, cutoff %d", b.Users, b.NoiseTrials, b.Cutoff)
	}
}

// bundleTwice returns a bundle of two users with one id, which seal.Seal would refuse to make. With the ids bound in
// order it opens, and the mixer must see it.
func (w *world) bundleTwice(in *invitation, id [16]byte) []byte {
	w.t.Helper()
	r, err := sealTwice(in, w.hash, id, w.plaintext(1, 2))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.encode(r)
}

// TestOneCiphertextUnderTwoIDs: what a broker can replay under another id does not open; replayed under its own id it
// is a duplicate. Either way it counts once.
func TestOneCiphertextUnderTwoIDs(t *testing.T) {
	for _, suite := range []wire.Suite{wire.Suite_SUITE_X25519, wire.Suite_SUITE_MLKEM768_X25519} {
		w := newWorld(t, plan{cohort: 8, minimum: 1, suite: suite})
		a, in := w.attempt(1)
		data := w.seal(in, [][16]byte{randomID()}, w.plaintext(5))
		var r wire.Report
		if err := stream.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		if got := a.examine(w.message(in, 1, data)); got != Accepted {
			t.Fatal(got)
		}
		for sequence := range uint64(20) {
			id := randomID()
			r.Ids[0] = id[:]
			if got := a.examine(w.message(in, 2+sequence, w.encode(&r))); got != Undecryptable {
				t.Fatalf("%v: under another id: %v", suite, got)
			}
		}
		if got := a.examine(w.message(in, 99, data)); got != Duplicate || a.mixer.Users() != 1 {
			t.Errorf("%v: under its own id: %v, %d users", suite, got, a.mixer.Users())
		}
	}
}

// TestNothingIsLeftAfterClose: what a broker recorded cannot be opened with what an attempt leaves behind, closed or
// erased, and the totals are gone.
func TestNothingIsLeftAfterClose(t *testing.T) {
	for name, end := range map[string]func(*attempt){
		"close": func(a *attempt) {
			if _, err := a.close(); err != nil {
				t.Error(err)
			}
		},
		"erase": (*attempt).erase,
	} {
		w := newWorld(t, plan{cohort: 8, minimum: 1, suite: wire.Suite_SUITE_X25519})
		a, in := w.attempt(1)
		data := w.seal(in, [][16]byte{randomID()}, w.plaintext(5))
		if got := a.examine(w.message(in, 1, data)); got != Accepted {
			t.Fatal(got)
		}
		end(a)
		var r wire.Report
		if err := stream.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		if _, err := a.opener.key.Open(a.opener.context, &r); !errors.Is(err, seal.ErrErased) {
			t.Errorf("%s: the key opens: %v", name, err)
		}
		if a.single.ids != nil || a.single.plaintext != nil || len(a.single.report.Ciphertext) != 0 || a.mixer.CanClose() {
			t.Errorf("%s: ids, a report or totals are left", name)
		}
		if got := a.examine(w.message(in, 2, w.seal(in, [][16]byte{randomID()}, w.plaintext(6)))); got != Undecryptable {
			t.Errorf("%s: a late report: %v", name, got)
		}
	}
}

// TestNoPlaintextStays: after a report is examined nothing refers to its bytes, which are the caller's to overwrite
// and plaintext where the task does not seal.
func TestNoPlaintextStays(t *testing.T) {
	w := newWorld(t, plan{cohort: 8, suite: wire.Suite_SUITE_NONE})
	a, in := w.attempt(1)
	if got := a.examine(w.message(in, 1, w.seal(in, [][16]byte{randomID()}, w.plaintext(5)))); got != Accepted {
		t.Fatal(got)
	}
	r := &a.single.report
	if a.single.plaintext != nil || a.single.message != nil || r.Ciphertext != nil || r.Encapsulated != nil ||
		r.TaskHash != nil {
		t.Error("the counts of the last user are still in memory")
	}
	for _, id := range r.Ids[:cap(r.Ids)] {
		if id != nil {
			t.Error("an id of the last report refers to its message")
		}
	}
}

// TestGarbageKeepsMemory: what a flood of wrong reports leaves in memory does not grow with the flood.
func TestGarbageKeepsMemory(t *testing.T) {
	n := 8_000
	if longtest.Run(t, "a flood of a million reports; 8,000 are sent") {
		n = 1_000_000
	}
	w := newWorld(t, plan{cohort: 100, suite: wire.Suite_SUITE_X25519, bundle: 4})
	a, in := w.attempt(1)
	rng := rand.New(rand.NewPCG(1, 2))
	valid := w.seal(in, [][16]byte{randomID()}, w.plaintext(5))
	flood := func(n int) {
		for i := range n {
			data := bytes.Clone(valid)
			switch i % 4 {
			case 0:
				data[rng.IntN(len(data))] ^= byte(1 + rng.IntN(255))
			case 1:
				data = data[:rng.IntN(len(data))]
			case 2: // fresh ids that are not authenticated: the id set must not take them
				var r wire.Report
				if err := stream.Unmarshal(data, &r); err != nil {
					t.Fatal(err)
				}
				id := randomID()
				r.Ids[0] = id[:]
				data = w.encode(&r)
			case 3:
				data = make([]byte, rng.IntN(4096))
				for j := range data {
					data[j] = byte(rng.Uint32())
				}
			}
			if got := a.examine(w.message(in, uint64(i), data)); got == Accepted {
				t.Fatal("garbage was accepted")
			}
		}
	}
	flood(1000)
	before := heap()
	flood(n)
	if after := heap(); after > before+1<<20 {
		t.Errorf("the heap grew from %d to %d bytes over %d wrong reports", before, after, n)
	}
	runtime.KeepAlive(a)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// sealTwice seals two users under one id, as a gateway that lies would: by the format alone, without package seal.
func sealTwice(in *invitation, task stream.Hash, id [16]byte, plaintext []byte) (*wire.Report, error) {
	public, err := hpke.DHKEM(ecdh.X25519()).NewPublicKey(in.context.Public)
	if err != nil {
		return nil, err
	}
	enc, sender, err := hpke.NewSender(public, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), in.context.Info())
	if err != nil {
		return nil, err
	}
	aad := binary.BigEndian.AppendUint32(nil, 2)
	aad = append(append(aad, id[:]...), id[:]...)
	ciphertext, err := sender.Seal(aad, plaintext)
	return &wire.Report{
		Version: stream.Version, TaskHash: task[:], Ids: [][]byte{id[:], id[:]}, Encapsulated: enc, Ciphertext: ciphertext,
	}, err
}
