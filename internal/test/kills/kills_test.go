package kills

import (
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
)

// seed of a campaign: always the same without PANLEARN_DEEP, a new one with it, or the flag's.
func seed(t testing.TB) uint64 {
	s := *seedFlag
	if s == 0 {
		s = 1
		if longtest.On() {
			var b [8]byte
			_, _ = crand.Read(b[:]) // never fails
			s = binary.LittleEndian.Uint64(b[:])
		}
	}
	t.Logf("seed %d", s)
	return s
}

// campaign runs a task under kills and checks what is left. It returns how many kills were made.
func campaign(t *testing.T, p plan, k *killer, kills int) (made int, s sum) {
	begun := time.Now()
	f := newFleet(t, p)
	defer f.meddler.tell(t)
	w := watch(t, f.broker.URL())
	f.run(k, kills, w)
	took := time.Since(begun)
	w.look(t.Context())
	w.close()
	e := f.collect(w)
	violations, s := e.audit()
	violations = append(violations, w.violations...)
	violations = append(violations, f.replay(e)...)
	if k.weights["learner"] > 0 { // an early copy of its folder was kept
		violations = append(violations, f.goOn()...)
	}
	for _, v := range violations {
		t.Error(v)
	}
	byKind := map[string]int{}
	for _, r := range f.roles {
		byKind[r.kind] += r.kills
	}
	t.Logf(
		"%d kills %v in %v: %d rounds, %d of them void, %d attempts opened again; %d users in %d real batches, %d counted, %d uncounted, "+
			"%d unknown; in %d batches devices and batch agree to the user, %d users counted themselves in doubt",
		k.kills, byKind, took.Round(100*time.Millisecond), len(e.rounds), s.void, s.reopened, s.users, s.real, s.counted,
		s.uncounted,
		s.unknown, s.fit, s.doubt)
	return k.kills, s
}

var everybody = map[string]int{"learner": 3, "stage": 2, "publisher": 1, "broker": 2}

// TestKills: any of the processes is killed, the broker too, again and again; nothing is lost, and nothing counted
// twice.
func TestKills(t *testing.T) {
	s := seed(t)
	if !longtest.Run(t, "all but the first 10 of 200 kills") {
		k := &killer{rng: rand.New(rand.NewPCG(s, 0)), weights: everybody, spacing: 700 * time.Millisecond,
			pause: time.Second}
		campaign(t, plan{rounds: 10, cohort: 12, publishers: 2, rows: 1500, lease: time.Second}, k, 10)
		return
	}
	total := 0
	for i := uint64(0); total < 200 && i < 20; i++ {
		sound := t.Run(fmt.Sprint("campaign=", i), func(t *testing.T) {
			k := &killer{rng: rand.New(rand.NewPCG(s, i)), weights: everybody, spacing: 1500 * time.Millisecond,
				pause: 2 * time.Second}
			made, _ := campaign(t, plan{rounds: 40, cohort: 20, publishers: 2, rows: 6000, lease: 2 * time.Second}, k, 200-total)
			total += made
		})
		if !sound {
			return
		}
	}
	if total < 200 {
		t.Errorf("%d kills, want 200", total)
	}
}

// TestLearnerKills: the learner alone is killed, at many moments, while what it reads stays the same.
func TestLearnerKills(t *testing.T) {
	s := seed(t)
	kills, p := 12, plan{rounds: 8, cohort: 12, publishers: 1, rows: 400, lease: time.Second}
	if longtest.Run(t, "all but the first 12 of 200 kills of the learner") {
		kills, p = 200, plan{rounds: 200, cohort: 12, publishers: 1, rows: 4000, lease: 2 * time.Second}
	}
	k := &killer{rng: rand.New(rand.NewPCG(s, 1<<32)), weights: map[string]int{"learner": 1},
		spacing: 300 * time.Millisecond, pause: 50 * time.Millisecond}
	campaign(t, p, k, kills)
}

// TestRelayKills: devices reach the broker through a relay alone, and relay, broker and devices are killed, again and
// again: nobody is counted twice.
func TestRelayKills(t *testing.T) {
	kills, p := 10, plan{rounds: 10, cohort: 12, publishers: 2, rows: 1500, lease: time.Second, relayed: true}
	if longtest.Run(t, "all but the first 10 of 200 kills around a relay") {
		kills, p = 200, plan{rounds: 150, cohort: 20, publishers: 2, rows: 12_000, lease: 2 * time.Second, relayed: true}
	}
	k := &killer{rng: rand.New(rand.NewPCG(seed(t), 1<<34)),
		weights: map[string]int{"relay": 3, "broker": 2, "publisher": 1}, spacing: 700 * time.Millisecond, pause: time.Second}
	if made, s := campaign(t, p, k, kills); made == 0 || s.users == 0 {
		t.Errorf("%d kills, %+v: want users who were counted through a relay that was killed", made, s)
	}
}

// TestMeddlerKills: something between devices and relay answers 502, 429 and 413 to reports that it has forwarded, repeats
// others, and cuts requests that wait, while relay and broker are killed. What devices say of their users stays true.
func TestMeddlerKills(t *testing.T) {
	kills, p := 4, plan{rounds: 6, cohort: 12, publishers: 2, rows: 600, lease: time.Second, relayed: true, meddled: true}
	if longtest.Run(t, "all but the first 4 of 50 kills behind a meddler") {
		kills, p.rounds, p.rows = 50, 60, 5000
	}
	k := &killer{rng: rand.New(rand.NewPCG(seed(t), 1<<35)),
		weights: map[string]int{"relay": 2, "broker": 1, "publisher": 1}, spacing: 900 * time.Millisecond, pause: time.Second}
	if made, s := campaign(t, p, k, kills); made == 0 || s.users == 0 {
		t.Errorf("%d kills, %+v: want users who were counted behind a meddler", made, s)
	}
}

// TestSiloKills: silos that trust nobody are killed, again and again. In one pass no block is in two rounds, none
// is lost but what the plan does not want and the rows at the end that fill no block; in many all rows are one
// block, in each round once.
func TestSiloKills(t *testing.T) {
	kills, rounds := 8, 12
	if longtest.Run(t, "all but the first 8 of 100 kills of silos, twice") {
		kills, rounds = 100, 100
	}
	for i, all := range []bool{false, true} {
		p := plan{rounds: rounds, publishers: 2, units: 100 * rounds, rows: 200*rounds + 3, lease: time.Second, all: all}
		k := &killer{rng: rand.New(rand.NewPCG(seed(t), 1<<33+uint64(i))), weights: map[string]int{"publisher": 1},
			spacing: 600 * time.Millisecond,
			pause:   100 * time.Millisecond}
		if _, s := campaign(t, p, k, kills); s.counted == 0 || s.users == 0 {
			t.Errorf("%+v: want silos that are counted", s)
		}
	}
}
