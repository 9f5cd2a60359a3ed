package split

import (
	"bytes"
	"crypto/sha256"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/randomizer"
)

// unbound opens what sealAs sealed without looking at the associated data.
func unbound(sealed []byte, users []User) ([][]byte, error) {
	body := bytes.Clone(sealed[sha256.Size:])
	size := len(body) / len(users)
	var out [][]byte
	for i := range users {
		out = append(out, body[i*size:(i+1)*size:(i+1)*size])
	}
	return out, nil
}

// A corrupt helper with the broker replaces its own half of a public share before the honest leader: Prio3 takes it, and
// from the leader's prep share all counts follow. A corrupt leader does the same before the honest helper, who then
// accepts if and only if all counts are 0. Associated data that binds every public share of the bundle refuses both, in
// a bundle too, before anything is prepared.
func TestSwappedPublicShare(t *testing.T) {
	swap := func(w *world, m message, half int) message {
		m.users = slices.Clone(m.users)
		last := &m.users[len(m.users)-1]
		last.Public = bytes.Clone(last.Public)
		random := w.bytes32()
		copy(last.Public[half*seedBytes:], random[:])
		return m
	}
	for seed := range uint64(20) {
		w := newWorld(t, config(5, 2, 20), seed)
		careless, err := w.leader.Worker(unbound)
		w.must(err)
		m := swap(w, w.message(w.counts(), w.counts()), helper)
		job, _ := w.leader.Take(slices.Clone(m.users), m.sealed[leader], m.sealed[helper])
		job.Run(careless)
		if job.results[1].outcome != Accepted || job.results[1].prep == nil {
			t.Fatalf("Prio3 refuses a swapped half as %v: is this rule still needed?", job.results[1].outcome)
		}
		job, _ = w.leader.Take(slices.Clone(m.users), m.sealed[leader], m.sealed[helper])
		job.Run(w.workers[leader])
		for i, r := range job.results {
			if r.outcome != Unopened || r.prep != nil || r.state != nil {
				t.Errorf("user %d of a bundle with a swapped half: %v, prep share of %d bytes", i, r.outcome, len(r.prep))
			}
		}
	}
	// Before the helper: a request whose public share is not the one that the device sealed.
	for seed := range uint64(20) {
		w := newWorld(t, config(5, 2, 20), seed)
		w.give(w.message(w.counts(), w.counts()))
		r, _ := w.leader.Cut()
		m := swap(w, message{users: r.Bundles[0].Users}, leader)
		r.Bundles[0].Users = m.users
		reply := w.decide(r)
		if !slices.Equal(reply.Outcomes, []Outcome{Unopened, Unopened}) || len(reply.Messages) != 0 {
			t.Fatalf("the helper says %v, %d messages", reply.Outcomes, len(reply.Messages))
		}
		if w.helper.Users() != 0 {
			t.Errorf("the helper counts %d users", w.helper.Users())
		}
	}
}

// One sharing under two verify keys shows all counts to a corrupt helper. A device that starts again, and a copied
// machine that draws the same bytes, share afresh for every Open, Join, id and counts; within one attempt they repeat
// themselves exactly.
func TestNoSharingUnderTwoKeys(t *testing.T) {
	cfg := config(5, 2, 4)
	fresh, draw := [32]byte{1}, [32]byte{2}
	share := func(open, join Hash, draw, fresh [32]byte, counts ...uint32) [4]string {
		s, err := NewSharing(cfg.sharing(), open, join)
		if err != nil {
			t.Fatal(err)
		}
		id := ID(draw, open, join)
		out, err := s.Shard(counts, id, fresh)
		if err != nil {
			t.Fatal(err)
		}
		return [4]string{string(id[:]), string(out.Public), string(out.Leader), string(out.Helper)}
	}
	open, join := Hash{3}, Hash{4}
	first := share(open, join, draw, fresh, 1, 2, 3, 0, 1)
	if again := share(open, join, draw, fresh, 1, 2, 3, 0, 1); again != first {
		t.Error("the same draw of the same attempt is another report")
	}
	for what, other := range map[string][4]string{
		"another Open":            share(Hash{5}, join, draw, fresh, 1, 2, 3, 0, 1),
		"another Join":            share(open, Hash{5}, draw, fresh, 1, 2, 3, 0, 1),
		"Open and Join exchanged": share(join, open, draw, fresh, 1, 2, 3, 0, 1),
		"another draw":            share(open, join, [32]byte{6}, fresh, 1, 2, 3, 0, 1),
		"other counts":            share(open, join, draw, fresh, 1, 2, 3, 0, 2),
		"other fresh bytes":       share(open, join, draw, [32]byte{7}, 1, 2, 3, 0, 1),
	} {
		for i, part := range []string{"id", "public share", "leader's share", "helper's share"} {
			if i == 0 && (what == "other counts" || what == "other fresh bytes") {
				continue // the same report, shared again
			}
			if other[i] == first[i] {
				t.Errorf("%s: the same %s", what, part)
			}
		}
		if other[3][:seedBytes] == first[3][:seedBytes] || other[3][seedBytes:] == first[3][seedBytes:] {
			t.Errorf("%s: the same seed or blind", what)
		}
	}
}

// A device that learned the query point from the leader's prep share of a first report could forge the proof of a second
// one under the same id. The id is spent when it first opens, whatever the outcome, at the leader and at the helper by
// itself.
func TestSecondReportUnderOneID(t *testing.T) {
	for _, first := range []struct {
		what   string
		change func(w *world, r *Request)
		want   Outcome
	}{
		{"accepted", func(*world, *Request) {}, Accepted},
		{"bad proof", func(w *world, r *Request) { element(r.Bundles[0].Users[0].Prep, 1, 1) }, BadProof},
		{"bad share", func(w *world, r *Request) { fill(r.Bundles[0].Users[0].Prep[:elementBytes], 255) }, BadShare},
		{"bad length", func(w *world, r *Request) { r.Bundles[0].Users[0].Prep = []byte{1} }, BadLength},
		{"refused by the leader", func(w *world, r *Request) { r.Bundles[0].Users[0].Prep = nil }, Refused},
	} {
		t.Run(first.what, func(t *testing.T) {
			cfg := config(5, 2, 20)
			w := newWorld(t, cfg, 3)
			m := w.message(w.counts())
			w.give(m)
			good, _ := w.leader.Cut()
			r, err := DecodeRequest(good.Append(nil))
			w.must(err)
			first.change(w, &r)
			if reply := w.decide(r); reply.Outcomes[0] != first.want {
				t.Fatalf("the first is %v, want %v", reply.Outcomes[0], first.want)
			}
			users := w.helper.Users()
			// A hostile leader shows the honest report next.
			second := Request{X: good.X, N: 2, Bundles: []Bundle{{Users: []User{{ID: m.users[0].ID, Public: m.users[0].Public,
				Prep: good.Bundles[0].Users[0].Prep}}, Sealed: m.sealed[helper]}}}
			if reply := w.decide(second); reply.Outcomes[0] != Duplicate || w.helper.Users() != users {
				t.Errorf("the second is %v", reply.Outcomes[0])
			}
			if out := w.give(m); out[0] != Duplicate {
				t.Errorf("at the leader the second is %v", out[0])
			}
		})
	}
}

// Two bundles with one id that are opened at the same time: whichever is handed back first spends it, and nothing of the
// other leaves, though it was prepared.
func TestOneIDInTwoJobs(t *testing.T) {
	w := newWorld(t, config(5, 2, 20), 4)
	m := w.message(w.counts())
	a, _ := w.leader.Take(slices.Clone(m.users), m.sealed[leader], m.sealed[helper])
	b, _ := w.leader.Take(slices.Clone(m.users), m.sealed[leader], m.sealed[helper])
	a.Run(w.workers[leader])
	b.Run(w.workers[leader])
	if out := w.leader.Add(b); out[0] != Accepted {
		t.Error(out)
	}
	if out := w.leader.Add(a); out[0] != Duplicate {
		t.Error(out)
	}
	r, _ := w.leader.Cut()
	if got := r.Bundles; len(got) != 2 || got[0].Users[0].Prep == nil || got[1].Users[0].Prep != nil {
		t.Errorf("the request shows both prep shares: %d bundles", len(got))
	}
	if reply := w.decide(r); !slices.Equal(reply.Outcomes, []Outcome{Accepted, Duplicate}) {
		t.Errorf("the helper says %v", reply.Outcomes)
	}
}

// Workers of both parties on several goroutines, each with its own: every honest report is counted. The race detector
// sees a generator that two of them share; a worker that two of them use panics.
func TestWorkersRunAtTheSameTime(t *testing.T) {
	const goroutines, each = 4, 12
	w := newWorld(t, config(20, 5, goroutines*each), 5)
	run := func(role byte, make func(Opener) (*Worker, error), jobs []*Job) {
		var wait sync.WaitGroup
		for g := range goroutines {
			worker, err := make(openAs(role))
			w.must(err)
			wait.Go(func() {
				for i := g; i < len(jobs); i += goroutines {
					jobs[i].Run(worker)
				}
			})
		}
		wait.Wait()
	}
	var jobs []*Job
	for range goroutines * each {
		m := w.message(w.counts())
		job, _ := w.leader.Take(m.users, m.sealed[leader], m.sealed[helper])
		jobs = append(jobs, job)
	}
	run(leader, w.leader.Worker, jobs)
	for _, job := range jobs {
		w.leader.Add(job)
	}
	r, _ := w.leader.Cut()
	w.desk.Request(r)
	jobs, _ = w.helper.Work()
	run(helper, w.helper.Worker, jobs)
	reply, err := w.helper.Decide()
	w.must(err)
	_, err = w.leader.Handle(reply)
	w.must(err)
	if w.leader.Users() != goroutines*each || w.helper.Users() != goroutines*each {
		t.Errorf("leader counts %d, helper %d of %d", w.leader.Users(), w.helper.Users(), goroutines*each)
	}
}

// A worker in use by another goroutine refuses to run.
func TestWorkerIsOfOneGoroutine(t *testing.T) {
	w := newWorld(t, config(2, 2, 4), 6)
	m := w.message(w.counts())
	job, _ := w.leader.Take(m.users, m.sealed[leader], m.sealed[helper])
	var worker *Worker
	worker, err := w.leader.Worker(func(sealed []byte, users []User) ([][]byte, error) {
		defer func() {
			if recover() == nil {
				t.Error("a worker runs a second job at the same time")
			}
		}()
		(&Job{bundle: job.bundle, spent: []bool{false}}).Run(worker)
		return nil, nil
	})
	w.must(err)
	job.Run(worker)
}

// A corrupt helper subtracts T from its share, and lays no floor. Whether the round is void is then a function of the
// counts and of the leader's floor, whose law it follows: P(Bin(N_f, 1/2) < T - sum), no step at sum = T. The leader's
// floor is in its share before the other's is seen, so nothing else can be asked of the sum.
func TestSubtractedShare(t *testing.T) {
	longtest.Sequential(t)
	n := 20_000
	if longtest.On() {
		n = 100_000
	}
	const trials, threshold = 40, 60
	cfg := config(1, 6, 4)
	cfg.Params.FloorTrials = trials
	vec, err := cfg.sharing().newVec()
	if err != nil {
		t.Fatal(err)
	}
	noise, err := randomizer.NewBinomial(trials, randomizer.Fair)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(dptest.Source(t, 7))
	for _, sum := range []uint64{37, 38, 39, 40, 41, 42, 43} {
		p := 0.0
		for k, q := range dptest.BinomialProbabilities(trials, 0.5) {
			if sum+uint64(k) < threshold {
				p += q
			}
		}
		voids := uint64(0)
		for range n {
			own := vec.AggregateInit()
			counts := make([]byte, elementBytes)
			element(counts, 0, int(sum)) // the leader's part, the helper's being 0
			if err := own.UnmarshalBinary(counts); err != nil {
				t.Fatal(err)
			}
			acc := &accumulator{cfg: cfg, vec: vec, agg: &own, noise: noise, users: 1}
			var e Entropy
			for i := range e.Fresh {
				e.Fresh[i] = byte(random.Uint32())
			}
			f := Finish{X: cfg.X, Requests: 1, Users: 1}
			share, err := acc.finish(f, e)
			if err != nil {
				t.Fatal(err)
			}
			theirs := make([]byte, elementBytes)
			element(theirs, 0, -threshold)
			_, err = combine(cfg.Params, Prepared{Finish: f, Aggregate: share},
				Share{X: f.X, Requests: 1, Users: 1, Aggregate: theirs})
			if err != nil {
				voids++
			}
		}
		dptest.Rate(t, "void", voids, uint64(n), p, dptest.Alpha)
		if math.Abs(p-0.5) > 0.49 {
			t.Errorf("sum %d: the law gives %v, which tells nothing apart", sum, p)
		}
	}
}

// A helper that is forked, and draws the same bytes in both copies, releases twice: with the generator's state as it was
// the difference of both would be a user's counts. Floors that also follow from the attempt, the users, the chain and a
// secret of the key file differ: nothing but noise is in the difference.
func TestForkedHelper(t *testing.T) {
	cfg := config(40, 2, 8)
	entropy := Entropy{Fresh: [32]byte{1}, Secret: [32]byte{2}}
	w := newWorld(t, cfg, 8)
	known := w.message(w.counts())
	victim := w.counts()
	release := func(messages ...message) (Finish, []uint64) {
		w := newWorld(t, cfg, 9)
		for _, m := range messages {
			w.send(m)
		}
		p, err := w.leader.Prepare(Entropy{}, Note{})
		w.must(err)
		a := w.desk.Finish(p.Finish, entropy)
		if a.Commit == nil {
			t.Fatalf("%+v", a)
		}
		r, err := combine(cfg.Params, p, *a.Commit)
		w.must(err)
		leaders := floorsOf(t, cfg, p.Finish, [2]Entropy{{}, {}})[leader] // the leader is corrupt
		for j := range r.Totals {
			r.Totals[j] -= leaders[j]
		}
		return p.Finish, r.Totals
	}
	m := w.message(victim)
	f1, without := release(known)
	f2, with := release(known, m)
	same := 0
	for j := range victim {
		if with[j]-without[j] == uint64(victim[j]) {
			same++
		}
	}
	if same > 10 { // of 40 differences, each the victim's count with probability below 0.04
		t.Errorf("the difference of two releases is the victim's count in %d of %d coordinates", same, len(victim))
	}
	if _, again := release(known); !slices.Equal(again, without) {
		t.Error("one end of one attempt has two floors")
	}
	// Every part moves the floor.
	seen := map[[32]byte]string{}
	for what, seed := range map[string][32]byte{
		"the first":      floorSeed(entropy, helper, f1),
		"the second":     floorSeed(entropy, helper, f2),
		"the leader's":   floorSeed(entropy, leader, f1),
		"other fresh":    floorSeed(Entropy{Fresh: [32]byte{9}, Secret: entropy.Secret}, helper, f1),
		"other secret":   floorSeed(Entropy{Fresh: entropy.Fresh, Secret: [32]byte{9}}, helper, f1),
		"other open":     floorSeed(entropy, helper, changed(f1, func(f *Finish) { f.X.Open[0]++ })),
		"other join":     floorSeed(entropy, helper, changed(f1, func(f *Finish) { f.X.Join[0]++ })),
		"other attempt":  floorSeed(entropy, helper, changed(f1, func(f *Finish) { f.X.Number++ })),
		"other round":    floorSeed(entropy, helper, changed(f1, func(f *Finish) { f.X.Round++ })),
		"other chain":    floorSeed(entropy, helper, changed(f1, func(f *Finish) { f.Chain[0]++ })),
		"other users":    floorSeed(entropy, helper, changed(f1, func(f *Finish) { f.Users++ })),
		"other requests": floorSeed(entropy, helper, changed(f1, func(f *Finish) { f.Requests++ })),
	} {
		if other, ok := seen[seed]; ok {
			t.Errorf("%s has the floor of %s", what, other)
		}
		seen[seed] = what
	}
}

func changed(f Finish, change func(*Finish)) Finish {
	change(&f)
	return f
}
