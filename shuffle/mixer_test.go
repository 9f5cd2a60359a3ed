package shuffle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/randomizer"
)

// hot has one coordinate for each user and no noise: user i's report is 1 at i and 0 elsewhere, so that a total of 2
// proves a user counted twice. Counts take two bits, of which 3 is out of range.
func hot(users int) randomizer.Params {
	return randomizer.Params{Dim: users, ClipNorm: 1, Levels: 2, Trials: 0, Coin: randomizer.Fair}
}

func name(i int) (id ReportID) {
	binary.BigEndian.PutUint64(id[3:], uint64(i))
	return id
}

func oneHot(p randomizer.Params, i int) []byte {
	counts := make([]uint32, p.Dim)
	counts[i] = 1
	return p.Pack(nil, counts)
}

// bundle makes the ids and reports of users.
func bundle(p randomizer.Params, users ...int) (ids []ReportID, packed []byte) {
	for _, i := range users {
		ids = append(ids, name(i))
		packed = append(packed, oneHot(p, i)...)
	}
	return ids, packed
}

func mustMixer(t testing.TB, cfg Config) *Mixer {
	t.Helper()
	m, err := NewMixer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMixerCountsEachUserOnce(t *testing.T) {
	p := hot(8)
	m := mustMixer(t, Config{Params: p, Cohort: 5, Minimum: 3, MaxBundle: 3})
	add := func(want Outcome, users ...int) {
		t.Helper()
		if got := m.Add(bundle(p, users...)); got != want {
			t.Errorf("adding %v: %v, want %v", users, got, want)
		}
	}
	add(Accepted, 0)
	add(Duplicate, 0)
	add(Accepted, 1, 2)
	add(Duplicate, 3, 2)
	add(Duplicate, 3, 4, 3)
	add(BadBundle)
	add(BadBundle, 3, 4, 5, 6)
	add(Accepted, 3)
	ids, packed := bundle(p, 4, 5)
	for kind, c := range map[string]struct {
		ids    []ReportID
		packed []byte
		want   Outcome
	}{
		"short":          {ids, packed[:len(packed)-1], BadLength},
		"long":           {ids, append(slices.Clone(packed), 0), BadLength},
		"an id too many": {append(slices.Clone(ids), name(6)), packed, BadLength},
		"an id too few":  {ids[:1], packed, BadLength},
		"no report":      {ids, nil, BadLength},
	} {
		if got := m.Add(c.ids, c.packed); got != c.want {
			t.Errorf("%s: %v, want %v", kind, got, c.want)
		}
	}
	if m.Users() != 4 || m.Full() || !m.CanClose() {
		t.Fatalf("%v: want 4 users, not full, closable", m)
	}
	add(Accepted, 4, 5, 6) // beyond the cohort by MaxBundle-1
	if !m.Full() || m.Users() != 7 {
		t.Fatalf("%v: want full with 7", m)
	}
	add(full, 7)
	add(full, 7)
	add(Duplicate, 6)
	rel, err := m.Close()
	if err != nil {
		t.Fatal(err)
	}
	if want := []uint64{1, 1, 1, 1, 1, 1, 1, 0}; !slices.Equal(rel.Totals, want) || rel.Users != 7 ||
		rel.NoiseTrials != 0 {
		t.Errorf("release %+v, want totals %v of 7 users", rel, want)
	}
	add(Closed, 7)
}

// TestMixerRefusesWhatNoDeviceDraws: a report at the ends of all its ranges is not added, although each count could be
// a device's.
func TestMixerRefusesWhatNoDeviceDraws(t *testing.T) {
	p := randomizer.Params{Dim: 11, ClipNorm: 1, Levels: 35, Trials: 22, Coin: randomizer.Fair}
	m := mustMixer(t, Config{Params: p, Cohort: 4, Minimum: 2})
	ends := make([]uint32, p.Dim)
	for j := range ends {
		ends[j] = p.MaxCount()
	}
	if got := m.Add([]ReportID{name(0)}, p.Pack(nil, ends)); got != BadRange || m.Users() != 0 {
		t.Errorf("outcome %v of the ends of all ranges, %d users: want %v of none", got, m.Users(), BadRange)
	}
	one := slices.Repeat([]uint32{p.MaxCount() / 2}, p.Dim)
	one[3] = p.MaxCount()
	if got := m.Add([]ReportID{name(0)}, p.Pack(nil, one)); got != Accepted {
		t.Errorf("outcome %v of the end of one range, want %v", got, Accepted)
	}
}

// A bundle with one bad report leaves no trace of the good ones before it.
func TestMixerRefusesBundlesWhole(t *testing.T) {
	p := randomizer.Params{Dim: 2, ClipNorm: 1, Levels: 4, Trials: 0, Coin: randomizer.Fair} // counts up to 4 in 3 bits
	m := mustMixer(t, Config{Params: p, Cohort: 4, Minimum: 2, MaxBundle: 4})
	good := p.Pack(nil, []uint32{4, 1})
	for _, bad := range [][]byte{{0b101}, {0b1000_0000}} {
		if got := m.Add([]ReportID{name(0), name(1)}, append(slices.Clone(good), bad...)); got != BadRange {
			t.Errorf("outcome %v, want %v", got, BadRange)
		}
	}
	if m.Users() != 0 || m.totals[0] != 0 || m.totals[1] != 0 || m.ids.len() != 0 {
		t.Errorf("a refused bundle left users %d, totals %v, %d ids", m.Users(), m.totals, m.ids.len())
	}
	if got := m.Add([]ReportID{name(0), name(1)}, append(slices.Clone(good), good...)); got != Accepted {
		t.Errorf("the same ids with good reports: %v", got)
	}
	if m.totals[0] != 8 || m.totals[1] != 2 {
		t.Errorf("totals %v, want 8 and 2", m.totals)
	}
}

func TestMixerBelowMinimumChangesNothing(t *testing.T) {
	p := hot(4)
	p.Trials, p.FloorTrials = 7, 50
	made := 0
	m := mustMixer(t, Config{Params: p, Cohort: 4, Minimum: 2, Entropy: func() rand.Source {
		made++
		return randomizer.NewEntropy()
	}})
	m.Add(bundle(p, 1))
	before := slices.Clone(m.totals)
	if _, err := m.Close(); !errors.Is(err, errCohortTooSmall) {
		t.Errorf("closed one user of a minimum of two: %v", err)
	}
	if m.CanClose() || !slices.Equal(before, m.totals) || made != 1 {
		t.Errorf("the refused close changed the mixer: %v, %d generators", m, made)
	}
	if got := m.Add(bundle(p, 2)); got != Accepted || !m.CanClose() {
		t.Errorf("the mixer does not go on: %v", got)
	}
	if _, err := m.Close(); err != nil {
		t.Error(err)
	}
	if made != 3 {
		t.Errorf("%d generators, want 3: front floor, top-up, back floor", made)
	}
}

func TestMixerKeepsNothingAfterClose(t *testing.T) {
	p := hot(3)
	p.FloorTrials = 9
	for _, end := range []func(*Mixer){
		func(m *Mixer) {
			if _, err := m.Close(); err != nil {
				t.Error(err)
			}
		},
		(*Mixer).Erase,
	} {
		m := mustMixer(t, Config{Params: p, Cohort: 3, Minimum: 3})
		m.Add(bundle(p, 0))
		m.Add(bundle(p, 1))
		m.Add(bundle(p, 2))
		totals, ids := m.totals, m.ids.slots
		end(m)
		if !slices.Equal(totals, make([]uint64, 3)) || !slices.Equal(ids, make([]ReportID, len(ids))) || m.totals != nil ||
			m.ids != nil {
			t.Errorf("totals %v and ids %v survive", totals, ids)
		}
		if _, err := m.Close(); !errors.Is(err, errClosed) {
			t.Errorf("closed again: %v", err)
		}
		if m.CanClose() || m.Add(bundle(p, 0)) != Closed {
			t.Error("a closed mixer takes reports")
		}
		m.Erase()
	}
}

// Generators are erased: what is left of one is what seed zero gives.
func TestMixerErasesGenerators(t *testing.T) {
	p := hot(2)
	p.Trials, p.FloorTrials = 5, 9
	var made []*rand.ChaCha8
	m := mustMixer(t, Config{Params: p, Cohort: 2, Minimum: 1, Entropy: func() rand.Source {
		made = append(made, randomizer.NewEntropy())
		return made[len(made)-1]
	}})
	if len(made) != 1 {
		t.Fatalf("%d generators for the front floor", len(made))
	}
	m.Add(bundle(p, 0))
	if _, err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if len(made) != 3 {
		t.Fatalf("%d generators, want 3: front floor, top-up, back floor", len(made))
	}
	for i, src := range made {
		zero := rand.NewChaCha8([32]byte{})
		if src.Uint64() != zero.Uint64() {
			t.Errorf("generator %d still has its state", i)
		}
	}
}

func TestMixerDoesNotPrintTotals(t *testing.T) {
	m := mustMixer(t, Config{Params: hot(2), Cohort: 2, Minimum: 1})
	m.totals[0] = 987654321
	for _, s := range []string{fmt.Sprint(m), fmt.Sprintf("%+v", *m), fmt.Sprintf("%#v", m), fmt.Sprintf("%d", *m)} {
		if strings.Contains(s, "987654321") {
			t.Errorf("a total in %q", s)
		}
	}
}

// Floors and top-up have the law that Release.NoiseTrials says.
func TestMixerNoiseLaw(t *testing.T) {
	const repeat, dim = 100, 100 // coordinates are independent samples
	for i, c := range []struct {
		cfg   Config
		floor uint64
		users int
		want  uint64
	}{
		{Config{Cohort: 10, Minimum: 3}, 400, 4, 6*30 + 800},
		{Config{Cohort: 10, Minimum: 3}, 0, 4, 6 * 30},
		{Config{Cohort: 4, Minimum: 3}, 2000, 4, 4000},
		{Config{Cohort: 4, Planned: 10, Minimum: 3}, 0, 4, 6 * 30}, // full at 4, with the noise of 10
		{Config{Cohort: 6, Planned: 10, Minimum: 3}, 400, 4, 6*30 + 800},
	} {
		c.cfg.Params = randomizer.Params{Dim: dim, ClipNorm: 1, Levels: 4, Trials: 30, FloorTrials: c.floor,
			Coin: randomizer.Fair / 2}
		seeds := dptest.Source(t, uint64(i))
		c.cfg.Entropy = func() rand.Source { return rand.NewChaCha8(dptest.Seed(seeds.Uint64())) }
		report := c.cfg.Params.Pack(nil, slices.Repeat([]uint32{2}, dim))
		var samples []float64
		for range repeat {
			m := mustMixer(t, c.cfg)
			for u := range c.users {
				m.Add([]ReportID{name(u)}, report)
			}
			if m.Full() != (uint64(c.users) >= c.cfg.Cohort) {
				t.Fatalf("full: %v with %d of %d users", m.Full(), c.users, c.cfg.Cohort)
			}
			rel, err := m.Close()
			if err != nil {
				t.Fatal(err)
			}
			if rel.NoiseTrials != c.want+uint64(c.users)*30 {
				t.Fatalf("NoiseTrials = %d, want %d and the users' own %d", rel.NoiseTrials, c.want, c.users*30)
			}
			for _, total := range rel.Totals {
				samples = append(samples, float64(total)-float64(2*c.users))
			}
		}
		n := float64(c.want)
		dptest.Mean(t, "noise", samples, dptest.Moment{Mean: n / 4, Variance: n * 3 / 16, Term: 1}, dptest.Alpha)
		dptest.Variance(t, "noise", samples, n/4, n*3/16, dptest.Alpha)
	}
}

// What an intruder finds before the first report is the front floor, nothing less.
func TestMixerLaysTheFrontFloorFirst(t *testing.T) {
	const trials, dim, repeat = 900, 500, 20
	seeds := dptest.Source(t, 31)
	var samples []float64
	for range repeat {
		m := mustMixer(t, Config{
			Params: randomizer.Params{Dim: dim, ClipNorm: 1, Levels: 4, FloorTrials: trials, Coin: randomizer.Fair},
			Cohort: 4, Minimum: 3,
			Entropy: func() rand.Source { return rand.NewChaCha8(dptest.Seed(seeds.Uint64())) },
		})
		for _, total := range m.totals {
			samples = append(samples, float64(total))
		}
	}
	dptest.Mean(t, "front floor", samples, dptest.Moment{Mean: trials / 2, Variance: trials / 4, Term: 1}, dptest.Alpha)
	dptest.Variance(t, "front floor", samples, trials/2, trials/4, dptest.Alpha)
}

// TestWindowIsNotToppedUp checks that the stage adds nothing to the total of reports with a window, which carry their
// own noise, even if users are missing.
func TestWindowIsNotToppedUp(t *testing.T) {
	p := randomizer.Params{Dim: 2, ClipNorm: 1, Levels: 4, Trials: randomizer.MaxTrials, Units: 3, Window: 8,
		Coin: randomizer.Fair}
	m, err := NewMixer(Config{Params: p, Cohort: 1 << 20, Minimum: 1,
		Entropy: func() rand.Source { panic("noise of the stage") }})
	if err != nil {
		t.Fatal(err) // a top-up of so many trials would be refused
	}
	if out := m.Add([]ReportID{{1}}, p.Pack(nil, []uint32{12, 7})); out != Accepted {
		t.Fatal(out)
	}
	rel, err := m.Close()
	if err != nil || rel.NoiseTrials != randomizer.MaxTrials || !slices.Equal(rel.Totals, []uint64{12, 7}) {
		t.Errorf("released %+v, %v; want one report's trials and counts", rel, err)
	}
}
