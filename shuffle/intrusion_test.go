package shuffle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/randomizer"
)

// An intruded is a batch that is looked at: what its users send, and the attempt that they send it to.
type intruded struct {
	cfg     Config
	users   int // who come; below the cohort a top-up follows
	reports [][]uint32
	seeds   [][32]byte // of the generators, in the order in which they were made
}

// intrudedBatches returns a batch under each trust with floors, and one with a top-up. Reports have counts that no
// other number in the mixer's memory equals.
func intrudedBatches() map[string]*intruded {
	all := map[string]*intruded{}
	for name, c := range map[string]struct {
		trials uint32
		users  int
	}{"pan": {0, 5}, "pan below the cohort": {0, 4}, "shuffle+pan": {30, 5}, "shuffle+pan with top-up": {30, 3}} {
		b := &intruded{users: c.users, cfg: Config{
			Params: randomizer.Params{Dim: 3, ClipNorm: 1, Levels: 60000, Trials: c.trials, FloorTrials: 900,
				Coin: randomizer.Fair},
			Cohort: 5, Minimum: 3, MaxBundle: 2,
		}}
		for u := range c.users {
			b.reports = append(b.reports, []uint32{uint32(20011 + u), uint32(30011 + 7*u), uint32(40009 + 3*u)})
		}
		all[name] = b
	}
	return all
}

// open makes the mixer, with generators that are the same in every batch opened.
func (b *intruded) open(t *testing.T) *Mixer {
	b.seeds = nil
	cfg := b.cfg
	cfg.Entropy = func() rand.Source {
		seed := dptest.Seed(uint64(1000 + len(b.seeds)))
		b.seeds = append(b.seeds, seed)
		return rand.NewChaCha8(seed)
	}
	return mustMixer(t, cfg)
}

// noise makes again the noise that generator i drew.
func (b *intruded) noise(t *testing.T, i int, trials uint64) []uint64 {
	t.Helper()
	if i >= len(b.seeds) {
		t.Fatalf("generator %d was not made", i)
	}
	law, err := randomizer.NewBinomial(trials, b.cfg.Params.Coin)
	if err != nil {
		t.Fatal(err)
	}
	src := rand.NewChaCha8(b.seeds[i])
	out := make([]uint64, b.cfg.Params.Dim)
	for j := range out {
		out[j] = law.Sample(src)
	}
	return out
}

func (b *intruded) add(t *testing.T, m *Mixer, user int, report []uint32) {
	t.Helper()
	packed := b.cfg.Params.Pack(nil, report)
	if got := m.Add([]ReportID{name(user)}, packed); got != Accepted {
		t.Fatalf("user %d: %v", user, got)
	}
}

// sum adds the reports of users first to last-1.
func (b *intruded) sum(first, last int) []uint64 {
	out := make([]uint64, b.cfg.Params.Dim)
	for _, r := range b.reports[first:last] {
		for j, c := range r {
			out[j] += uint64(c)
		}
	}
	return out
}

func plus(a, b []uint64) []uint64 {
	out := slices.Clone(a)
	for j := range out {
		out[j] += b[j]
	}
	return out
}

// dump returns the mixer's whole memory except the floor's law, which is public; checkLaw checks that the law holds
// nothing else.
func dump(m *Mixer) dptest.Memory { return dptest.Dump(m, "floor") }

func checkLaw(t *testing.T, m *Mixer) {
	t.Helper()
	fresh, err := randomizer.NewBinomial(m.cfg.Params.FloorTrials, m.cfg.Params.Coin)
	if err != nil {
		t.Fatal(err)
	}
	if d := dptest.Dump(m.floor).Differences(dptest.Dump(fresh)); len(d) > 0 {
		t.Errorf("the law of a floor was changed by drawing from it, at %v", d)
	}
}

// On neighbouring streams, with one user's report replaced and everything else the same, all that differs in the
// mixer's memory is the totals from that report on, by the difference of the two reports; before it and after Close,
// nothing does.
func TestIntrusionSeesAReportInTheTotalsAlone(t *testing.T) {
	for trust, b := range intrudedBatches() {
		for target := range b.users {
			replaced := []uint32{45007, 20001, 47999}
			real, other := b.open(t), b.open(t)
			compare := func(moment string, changed bool) {
				t.Helper()
				got := dump(real).Differences(dump(other))
				var want []string
				for j := range replaced {
					if changed {
						want = append(want, ".totals["+strconv.Itoa(j)+"]")
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, user %d replaced, %s: memory differs at %v, want %v", trust, target, moment, got, want)
				}
			}
			compare("before the first report", false)
			for u := range b.users {
				b.add(t, real, u, b.reports[u])
				if u == target {
					b.add(t, other, u, replaced)
				} else {
					b.add(t, other, u, b.reports[u])
				}
				compare(fmt.Sprintf("after report %d", u), u >= target)
				for j := range replaced {
					if u >= target && real.totals[j]-other.totals[j] != uint64(b.reports[target][j])-uint64(replaced[j]) {
						t.Errorf("%s, user %d replaced: totals differ by more than the report", trust, target)
					}
				}
			}
			if len(b.seeds) != 1 {
				t.Fatalf("%s: %d generators were made before Close, want the front floor's", trust, len(b.seeds))
			}
			// The generators are made alike on purpose; so the releases differ by the report, too.
			first, err := real.Close()
			if err != nil {
				t.Fatal(err)
			}
			b.seeds = b.seeds[:1]
			second, err := other.Close()
			if err != nil {
				t.Fatal(err)
			}
			compare("after Close", false)
			for j := range replaced {
				if first.Totals[j]-second.Totals[j] != uint64(b.reports[target][j])-uint64(replaced[j]) {
					t.Errorf("%s, user %d replaced: releases differ by more than the report", trust, target)
				}
			}
		}
	}
}

// At every position the totals are the front floor and the reports, to the last unit, and what follows up to the
// release is the later reports, the top-up and the back floor. Each draw has a generator of its own, made when it is
// needed: the back floor's does not exist while anybody can look. In memory there is no generator, no floor by itself,
// and no report.
func TestIntrusionFindsOneFloorUnderEveryReport(t *testing.T) {
	for trust, b := range intrudedBatches() {
		m := b.open(t)
		front := b.noise(t, 0, b.cfg.Params.FloorTrials)
		var states [][]uint64
		look := func(k int) {
			t.Helper()
			where := fmt.Sprintf("%s, after %d reports", trust, k)
			seen := dump(m)
			seen.NoGenerator(t, where)
			checkLaw(t, m)
			if len(b.seeds) != 1 {
				t.Errorf("%s: %d generators were made, want the front floor's alone", where, len(b.seeds))
			}
			if !slices.Equal(seen.Funcs, []string{".cfg.Entropy"}) {
				t.Errorf("%s: functions at %v, want the source of generators alone", where, seen.Funcs)
			}
			if want := plus(front, b.sum(0, k)); !slices.Equal(m.totals, want) {
				t.Errorf("%s: totals %v, want floor and reports %v", where, m.totals, want)
			}
			b.absent(t, where, seen, front, k)
			states = append(states, slices.Clone(m.totals))
		}
		look(0)
		for u, r := range b.reports {
			b.add(t, m, u, r)
			look(u + 1)
		}
		rel, err := m.Close()
		if err != nil {
			t.Fatal(err)
		}
		after := dump(m)
		after.NoGenerator(t, trust+", after Close")
		for path := range after.Leaves {
			if strings.HasPrefix(path, ".totals") || strings.HasPrefix(path, ".ids") {
				t.Errorf("%s: %s after Close", trust, path)
			}
		}
		b.checkBack(t, trust, states, rel)
	}
}

// absent: in memory there is neither the front floor by itself, once there is a report, nor what one user sent.
func (b *intruded) absent(t *testing.T, where string, seen dptest.Memory, front []uint64, k int) {
	t.Helper()
	secret := map[string]string{}
	for u, r := range b.reports[:k] {
		for j, c := range r {
			secret[strconv.Itoa(int(c))] = fmt.Sprintf("what user %d sent", u)
			secret[strconv.FormatUint(front[j], 10)] = "the front floor"
		}
		if paths := seen.Holds(b.cfg.Params.Pack(nil, r)[:4]); len(paths) > 0 {
			t.Errorf("%s: what user %d sent is at %v", where, u, paths)
		}
	}
	for path, v := range seen.Leaves {
		if what, found := secret[v]; found {
			t.Errorf("%s: %s is %s", where, path, what)
		}
	}
}

// checkBack takes the generators that Close made: of the top-up, if users are missing who would have sent noise, and of
// the back floor. No two generators of a batch have the same seed.
func (b *intruded) checkBack(t *testing.T, trust string, states [][]uint64, rel Release) {
	t.Helper()
	missing := (b.cfg.Cohort - uint64(b.users)) * uint64(b.cfg.Params.Trials)
	made := 2
	rest := make([]uint64, b.cfg.Params.Dim)
	if missing > 0 {
		made = 3
		rest = b.noise(t, 1, missing)
	}
	if len(b.seeds) != made {
		t.Fatalf("%s: %d generators, want %d", trust, len(b.seeds), made)
	}
	back := b.noise(t, made-1, b.cfg.Params.FloorTrials)
	if slices.Equal(back, b.noise(t, 0, b.cfg.Params.FloorTrials)) {
		t.Errorf("%s: both floors are the same draw", trust)
	}
	for k, state := range states {
		want := plus(plus(state, b.sum(k, b.users)), plus(rest, back))
		if !slices.Equal(rel.Totals, want) {
			t.Errorf("%s: after %d reports the release is not state, later reports, top-up and back floor: %v, want %v", trust,
				k, rel.Totals, want)
		}
	}
	if want := uint64(b.users)*uint64(b.cfg.Params.Trials) + missing +
		2*b.cfg.Params.FloorTrials; rel.NoiseTrials != want {
		t.Errorf("%s: %d noise trials, want %d", trust, rel.NoiseTrials, want)
	}
}

// In production both floors, seen from any position, have the law of Bin(N_f, p), and so have their sum and difference
// that of independent draws: with one generator for both the difference would be zero.
//
// False-alarm rate: 4 assertions of 1e-9.
func TestFloorsAreIndependentDraws(t *testing.T) {
	const trials, dim, repeat, users = 900, 500, 40, 4
	p := randomizer.Params{Dim: dim, ClipNorm: 1, Levels: 40, FloorTrials: trials, Coin: randomizer.Fair}
	rng := rand.New(dptest.Source(t, 77))
	var front, back, both, apart []float64
	for i := range repeat {
		m := mustMixer(t, Config{Params: p, Cohort: users, Minimum: users}) // Entropy: the production default
		state := make([]uint64, dim)
		before, after := make([]uint64, dim), make([]uint64, dim) // reports in the state, and later ones
		k := i % (users + 1)
		for u := range users + 1 {
			if u == k {
				copy(state, m.totals)
			}
			if u == users {
				break
			}
			counts := make([]uint32, dim)
			for j := range counts {
				counts[j] = 18 + rng.Uint32N(5)
				if u < k {
					before[j] += uint64(counts[j])
				} else {
					after[j] += uint64(counts[j])
				}
			}
			if got := m.Add([]ReportID{name(u)}, p.Pack(nil, counts)); got != Accepted {
				t.Fatal(got)
			}
		}
		rel, err := m.Close()
		if err != nil {
			t.Fatal(err)
		}
		for j := range state {
			f, b := float64(state[j]-before[j]), float64(rel.Totals[j]-state[j]-after[j])
			front, back = append(front, f), append(back, b)
			both, apart = append(both, f+b), append(apart, f-b)
		}
	}
	dptest.Variance(t, "front floor", front, trials/2, trials/4, dptest.Alpha)
	dptest.Variance(t, "back floor", back, trials/2, trials/4, dptest.Alpha)
	dptest.Variance(t, "sum of the floors", both, trials, trials/2, dptest.Alpha)
	dptest.Variance(t, "difference of the floors", apart, 0, trials/2, dptest.Alpha)
}

// The source of generators holds nothing: the default is one and the same function value for all mixers, where a
// closure over a seed or a generator would be a value for each.
func TestDefaultEntropyHoldsNothing(t *testing.T) {
	p := randomizer.Params{Dim: 1, ClipNorm: 1, Levels: 1, FloorTrials: 9, Coin: randomizer.Fair}
	cfg := Config{Params: p, Cohort: 1, Minimum: 1}
	a, b := mustMixer(t, cfg), mustMixer(t, cfg)
	value := func(m *Mixer) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&m.cfg.Entropy)) }
	if value(a) != value(b) {
		t.Error("two mixers have different sources of generators")
	}
	words := map[uint64]bool{}
	for _, m := range []*Mixer{a, a, b} {
		words[m.cfg.Entropy().Uint64()] = true
	}
	if len(words) != 3 {
		t.Errorf("3 generators begin with %d different words", len(words))
	}
}
