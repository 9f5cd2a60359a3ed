package shuffle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/randomizer"
)

// TestPartsAreTheWhole: users who are split over several mixers give, merged, the totals of one.
func TestPartsAreTheWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "users")
		workers := rapid.IntRange(1, 4).Draw(rt, "workers")
		cfg := Config{Params: hot(n), Cohort: uint64(n), Minimum: uint64(n)}
		whole, parts := mustMixer(t, cfg), make([]*Mixer, workers)
		for i := range parts {
			parts[i] = mustMixer(t, cfg)
		}
		for u := range n {
			at := rapid.IntRange(0, workers-1).Draw(rt, "worker")
			ids, packed := bundle(cfg.Params, u)
			if got := parts[at].Add(ids, packed); got != Accepted {
				rt.Fatal(got)
			}
			whole.Add(ids, packed)
		}
		for _, m := range parts[1:] {
			p, err := m.Part()
			if err != nil {
				rt.Fatal(err)
			}
			if m.totals != nil || m.ids != nil {
				rt.Fatal("a mixer that handed over keeps totals or ids")
			}
			if _, err := m.Part(); !errors.Is(err, ErrClosed) {
				rt.Fatalf("handed over twice: %v", err)
			}
			if err := parts[0].Merge(p); err != nil {
				rt.Fatal(err)
			}
		}
		got, err := parts[0].Close()
		want, err2 := whole.Close()
		if err != nil || err2 != nil || !slices.Equal(got.Totals, want.Totals) || got.Users != want.Users || got.NoiseTrials != want.NoiseTrials {
			rt.Fatalf("%v, %v: %+v, want %+v", err, err2, got, want)
		}
	})
}

// TestMergeRefuses: what cannot be the totals of so many users changes nothing.
func TestMergeRefuses(t *testing.T) {
	params := randomizer.Params{Dim: 3, ClipNorm: 1, Levels: 2, Trials: 3, Coin: randomizer.Fair}
	cfg := Config{Params: params, Cohort: 4, Minimum: 1, MaxBundle: 2}
	for name, p := range map[string]Part{
		"dimension":      {Users: 1, Totals: make([]uint64, 2)},
		"total":          {Users: 2, Totals: []uint64{0, 11, 0}},
		"nobody's total": {Users: 0, Totals: []uint64{0, 1, 0}},
		"users":          {Users: 6, Totals: make([]uint64, 3)},
		"overflow":       {Users: 1<<64 - 1, Totals: make([]uint64, 3)},
	} {
		m := mustMixer(t, cfg)
		if err := m.Merge(p); err == nil || m.Users() != 0 || slices.Max(m.totals) != 0 {
			t.Errorf("%s: %v, %d users, totals %v", name, err, m.Users(), m.totals)
		}
	}
	m := mustMixer(t, cfg)
	if err := m.Merge(Part{Users: 5, Totals: []uint64{25, 0, 1}}); err != nil || !m.Full() {
		t.Errorf("a cohort overfull by a bundle less one: %v", err)
	}
	if err := m.Merge(Part{Users: 1, Totals: make([]uint64, 3)}); err == nil {
		t.Error("room for more than that")
	}
	m.Erase()
	if err := m.Merge(Part{Totals: make([]uint64, 3)}); !errors.Is(err, ErrClosed) {
		t.Errorf("erased: %v", err)
	}
}

// TestFloorsAreOfOneMixer: with floors there is one worker.
func TestFloorsAreOfOneMixer(t *testing.T) {
	cfg := Config{Params: hot(3), Cohort: 2, Minimum: 1}
	cfg.Params.FloorTrials = 100
	if _, err := mustMixer(t, cfg).Part(); err == nil {
		t.Error("a part with a floor")
	}
	if err := mustMixer(t, cfg).Merge(Part{Totals: make([]uint64, 3)}); err == nil {
		t.Error("merged into a mixer with floors")
	}
}

// TestPartPrintsNoTotal: parts may meet a log line.
func TestPartPrintsNoTotal(t *testing.T) {
	p := Part{Users: 3, Totals: []uint64{987654}}
	if s := fmt.Sprintf("%v %+v %#v %s", p, p, p, p); strings.Contains(s, "987654") {
		t.Error(s)
	}
}
