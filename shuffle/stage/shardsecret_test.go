package stage

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/memory"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// inClear says whether data holds totals of one-hot users in any encoding that counts bytes: a run of zeros and ones.
// In n random bytes a run of 32 is there with probability below n * 2^-224.
func inClear(data []byte) bool {
	run := 0
	for _, b := range data {
		if run++; b > 1 {
			run = 0
		}
		if run == 32 {
			return true
		}
	}
	return false
}

// TestPartialTotalsAreNeverInClear: whatever the suite, neither what lies at the broker nor what was ever written between
// owner and workers shows totals, but for the batch.
func TestPartialTotalsAreNeverInClear(t *testing.T) {
	for _, suite := range []wire.Suite{wire.Suite_SUITE_NONE, wire.Suite_SUITE_X25519} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 2, cohort: 48, suite: suite, broker: memory.Config{Keep: true}})
			var sent wires
			one := func(ctx context.Context) { w.life(ctx, "", false, &sent, w.shared(2, nil)) }
			w.run(t.Context(), one, one)
			w.audit()
			parts := 0
			for _, data := range sent.said {
				var p wire.Part
				if _, err := seal.Verify(data, w.stage.Public(), &p); err == nil {
					parts++
				}
				if inClear(data) {
					t.Errorf("%v: totals among what was written on Leases", suite)
				}
			}
			for _, m := range w.broker.Dump() {
				switch m.Stream {
				case stream.Leases, stream.Attempts:
					if inClear(m.Data) {
						t.Errorf("%v: totals on %s", suite, m.Subject)
					}
				case stream.Batches:
					if !inClear(m.Data) {
						t.Errorf("%s: the search does not find totals where they are", m.Subject)
					}
				}
			}
			if parts < 2 {
				t.Errorf("%v: %d parts were handed over: this test shows nothing", suite, parts)
			}
			partial, err := stream.Marshal(&wire.Partial{Version: stream.Version, Totals: make([]uint64, 9)})
			if err != nil || !inClear(partial) {
				t.Errorf("the search does not find a part in clear: %v", err)
			}
		})
	}
}

// pair is an attempt in two shards: its owner and its worker.
func pair(t *testing.T, w *world) (owner, worker *attempt, in *invitation) {
	t.Helper()
	make := func() *attempt {
		f := w.new(w.config()).facts
		f.task, f.taskHash = w.task, w.hash
		cfg := mixerConfig(t, w)
		a, err := newAttempt(f, round{number: 1, manifest: stream.Hash{1}, mixer: cfg}, 3, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	owner, worker = make(), make()
	m := &member{seat: 1, instance: worker.Instance, key: worker.key.Public()}
	if err := owner.own([]*member{m}); err != nil {
		t.Fatal(err)
	}
	worker.share(2, 2)
	owner.limit, worker.limit = 100, 100
	return owner, worker, &invitation{round: 1, attempt: 3, suite: w.task.Suite, context: owner.context,
		keys: [][]byte{owner.key.Public(), worker.key.Public()}}
}

func mixerConfig(t *testing.T, w *world) shuffle.Config {
	t.Helper()
	return shuffle.Config{Params: w.params, Cohort: w.task.Plan.Phases[0].Cohort, Minimum: w.task.Plan.Phases[0].Minimum, MaxBundle: uint64(w.bundle)}
}

// TestShardReasons: a report is opened by the worker of its ids' shard, under that shard's key and number, and by nobody
// else.
func TestShardReasons(t *testing.T) {
	w := newWorld(t, plan{cohort: 9, suite: wire.Suite_SUITE_X25519, bundle: 3})
	_, worker, in := pair(t, w)
	ids := func(shards ...uint32) (all [][16]byte) {
		for _, s := range shards {
			id := randomID()
			for stream.ShardOf(id, 2) != s {
				id = randomID()
			}
			all = append(all, id)
		}
		return all
	}
	at := w.name.ReportShard(1, 3, 2)
	// misled seals for a shard that is not that of the ids.
	misled := func(shard uint32, key []byte, ids [][16]byte) []byte {
		c := in.context
		c.Shard, c.Public = shard, key
		r, err := seal.Seal(in.suite, c, w.hash, ids, w.plaintext(5))
		if err != nil {
			t.Fatal(err)
		}
		return w.encode(r)
	}
	twice := w.seal(in, ids(2), w.plaintext(0))
	for _, c := range []struct {
		name, subject string
		data          []byte
		want          Reason
	}{
		{"its own shard", at, twice, Accepted},
		{"again", at, twice, Duplicate},
		{"a bundle", at, w.seal(in, ids(2, 2), w.plaintext(1, 2)), Accepted},
		{"another shard's subject", w.name.ReportShard(1, 3, 1), w.seal(in, ids(2), w.plaintext(3)), WrongShard},
		{"no shard's subject", w.name.Report(1, 3), w.seal(in, ids(2), w.plaintext(3)), WrongShard},
		{"another shard's ids", at, w.seal(in, ids(1), w.plaintext(3)), WrongShard},
		{"another shard's ids under this shard's key", at, misled(2, in.keys[1], ids(1)), WrongShard},
		{"a bundle of two shards", at, w.seal(in, ids(2, 1), w.plaintext(3, 4)), WrongShard},
		{"another shard's key", at, misled(2, in.keys[0], ids(2)), Undecryptable},
		{"another shard's number", at, misled(1, in.keys[1], ids(2)), Undecryptable},
		{"sealed as if not sharded", at, misled(0, in.keys[1], ids(2)), Undecryptable},
	} {
		if got := worker.examine(&stream.Message{Subject: c.subject, Sequence: 1, Data: c.data}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if worker.mixer.Users() != 3 {
		t.Errorf("%d users, want 3", worker.mixer.Users())
	}
}

// TestPartsOfStrangers: the owner adds the first part of each worker of this attempt, and nothing else.
func TestPartsOfStrangers(t *testing.T) {
	w := newWorld(t, plan{cohort: 9, minimum: 1})
	owner, worker, in := pair(t, w)
	id := randomID()
	for stream.ShardOf(id, 2) != 2 {
		id = randomID()
	}
	data := w.seal(in, [][16]byte{id}, w.plaintext(4))
	if got := worker.examine(&stream.Message{Subject: w.name.ReportShard(1, 3, 2), Sequence: 77, Data: data}); got != Accepted {
		t.Fatal(got)
	}
	good, err := worker.part(1, owner.handover.Public())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := worker.part(1, owner.handover.Public()); err == nil {
		t.Error("a worker hands over twice")
	}
	var report wire.Report
	if err := stream.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	if _, err := worker.key.Open(worker.context, &report); !errors.Is(err, seal.ErrErased) || worker.mixer.CanClose() {
		t.Errorf("a worker that handed over still has its key or totals: %v", err)
	}
	var body wire.Part
	if _, err := seal.Verify(good, w.stage.Public(), &body); err != nil {
		t.Fatal(err)
	}
	m := owner.crew[0]
	part := func(by *seal.Identity, change func(*wire.Part)) []byte {
		p := &wire.Part{Version: stream.Version, TaskHash: w.hash[:], Round: 1, Attempt: 3, ManifestHash: body.ManifestHash,
			Shard: 2, Seat: 1, Instance: body.Instance, Encapsulated: body.Encapsulated, Ciphertext: body.Ciphertext}
		change(p)
		return w.sign(by, p)
	}
	sealed := func(change func(*wire.Partial)) []byte {
		plain := &wire.Partial{Version: stream.Version, Users: 1, Cutoff: 77, Totals: make([]uint64, w.params.Dim)}
		change(plain)
		data, err := stream.Marshal(plain)
		if err != nil {
			t.Fatal(err)
		}
		enc, sealed, err := seal.SealPart(wire.Suite_SUITE_X25519, owner.handoverContext(2, owner.handover.Public()), m.instance, data)
		if err != nil {
			t.Fatal(err)
		}
		return part(w.stage, func(p *wire.Part) { p.Encapsulated, p.Ciphertext = enc, sealed })
	}
	same := func(*wire.Part) {}
	m.users = 1
	for name, data := range map[string][]byte{
		"nothing": nil, "noise": []byte("noise"), "unsigned": body.Ciphertext,
		"signed by the learner":             part(w.learner, same),
		"another round":                     part(w.stage, func(p *wire.Part) { p.Round = 2 }),
		"another attempt":                   part(w.stage, func(p *wire.Part) { p.Attempt = 2 }),
		"another manifest":                  part(w.stage, func(p *wire.Part) { p.ManifestHash = make([]byte, 32) }),
		"another shard":                     part(w.stage, func(p *wire.Part) { p.Shard = 3 }),
		"another worker":                    part(w.stage, func(p *wire.Part) { p.Instance = make([]byte, 16) }),
		"another seat":                      part(w.stage, func(p *wire.Part) { p.Seat = 2 }),
		"another task":                      part(w.stage, func(p *wire.Part) { p.TaskHash = make([]byte, 32) }),
		"changed":                           part(w.stage, func(p *wire.Part) { p.Ciphertext = append([]byte{p.Ciphertext[0] ^ 1}, p.Ciphertext[1:]...) }),
		"fewer users than it said":          sealed(func(p *wire.Partial) { p.Users = 0 }),
		"more users than there is room":     sealed(func(p *wire.Partial) { p.Users = 10 }),
		"a total that one user cannot have": sealed(func(p *wire.Partial) { p.Totals[3] = 3 }),
		"another dimension":                 sealed(func(p *wire.Partial) { p.Totals = p.Totals[1:] }),
	} {
		_ = owner.gather(m, 2, &stream.Message{Subject: w.name.Part(1), Sequence: 1, Data: data})
		if m.done || owner.mixer.Users() != 0 || owner.cutoff != 0 {
			t.Fatalf("%s: taken, %d users, cutoff %d", name, owner.mixer.Users(), owner.cutoff)
		}
	}
	for range 2 { // and then not again, whoever it is from
		if err := owner.gather(m, 2, &stream.Message{Subject: w.name.Part(1), Sequence: 1, Data: good}); err != nil || !m.done {
			t.Fatalf("the worker's own part: %v", err)
		}
	}
	again := sealed(func(p *wire.Partial) { p.Totals[4] = 1 })
	if err := owner.gather(m, 2, &stream.Message{Subject: w.name.Part(1), Sequence: 2, Data: again}); err != nil || owner.mixer.Users() != 1 {
		t.Errorf("a second part: %v, %d users", err, owner.mixer.Users())
	}
	out, err := owner.close()
	if err != nil {
		t.Fatal(err)
	}
	var b wire.Batch
	if _, err := seal.Verify(out.batch, w.stage.Public(), &b); err != nil {
		t.Fatal(err)
	}
	if b.Users != 1 || b.Cutoff != 77 || b.NoiseTrials != 9 || b.Totals[4] < 1 {
		t.Errorf("%d users, cutoff %d, %d trials", b.Users, b.Cutoff, b.NoiseTrials)
	}
	if owner.handover != nil {
		if _, err := owner.handover.OpenPart(owner.handoverContext(2, owner.handover.Public()), m.instance, body.Encapsulated, body.Ciphertext); err == nil {
			t.Error("the handover key outlives its attempt")
		}
	}
}

// TestRoomMovesWhenItIsGivenUp: what a worker may not take any more is given to another only after it has said so, with
// the users that came to it meanwhile.
func TestRoomMovesWhenItIsGivenUp(t *testing.T) {
	w := newWorld(t, plan{cohort: 10})
	owner, worker, _ := pair(t, w)
	now := time.Now()
	next, err := startSharing(&collecting{facts: owner.facts, attempt: owner, look: now.Add(time.Hour)}, owner.crew, now)
	if err != nil {
		t.Fatal(err)
	}
	p := next.(*sharing)
	stands := func() {
		t.Helper()
		if _, err := p.stands(now); err != nil {
			t.Fatal(err)
		}
	}
	sequence := uint64(0)
	says := func(table, users uint64) {
		sequence++
		data := w.sign(w.stage, &wire.Seat{Version: stream.Version, TaskHash: w.hash[:], Seat: 1, Instance: worker.Instance[:], Beat: 1,
			Round: 1, Attempt: 3, Owner: owner.Instance[:], PublicKey: worker.key.Public(), Quota: table, Users: users})
		owner.crew[0].listen(owner.facts, now, owner, &stream.Message{Subject: w.name.Seat(1), Sequence: sequence, Data: data})
	}
	judged := func() []uint64 {
		t.Helper()
		if _, err := p.judge(now); err != nil {
			t.Fatal(err)
		}
		if p.data == nil {
			return nil
		}
		return p.caps
	}
	stands() // 5 and 5
	for u := range uint64(5) {
		if out := owner.mixer.Add([]shuffle.ReportID{randomID()}, w.plaintext(u)); out != shuffle.Accepted {
			t.Fatal(out)
		}
	}
	p.keep([]stream.Delivery{{}}) // more are waiting here
	says(1, 0)
	if caps := judged(); !slices.Equal(caps, []uint64{5, 0}) {
		t.Fatalf("caps %v, want the room of the other lowered first", caps)
	}
	stands()
	if caps := judged(); caps != nil {
		t.Fatalf("caps %v before the other gave its room up", caps)
	}
	says(1, 3) // it went on meanwhile
	if caps := judged(); caps != nil {
		t.Fatalf("caps %v before the other gave its room up", caps)
	}
	says(2, 3)
	if caps := judged(); !slices.Equal(caps, []uint64{7, 0}) {
		t.Fatalf("caps %v, want what is left: 7 and 3 are the cohort", caps)
	}
}
