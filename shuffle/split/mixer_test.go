package split

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/shuffle"
)

// The two operators release what one trusted Mixer releases of the same reports with the same two floors: equal totals,
// users and trials.
func TestSplitIsAMixer(t *testing.T) {
	longtest.Sequential(t)
	rapid.Check(t, func(rt *rapid.T) {
		d, k := rapid.IntRange(1, 12).Draw(rt, "d"), rapid.IntRange(1, 6).Draw(rt, "k")
		cfg := config(d, k, 12)
		cfg.Params.FloorTrials = rapid.Uint64Range(1, 5000).Draw(rt, "floor")
		w := newWorld(t, cfg, rapid.Uint64().Draw(rt, "seed"))
		var all [][]uint32
		for range rapid.IntRange(1, 4).Draw(rt, "bundles") {
			var bundle [][]uint32
			for range rapid.IntRange(1, 3).Draw(rt, "users") {
				bundle = append(bundle, w.counts())
			}
			all = append(all, bundle...)
			m := w.message(bundle...)
			if rapid.Bool().Draw(rt, "wait") {
				w.give(m)
				continue
			}
			w.send(m)
		}
		w.exchange()
		if w.leader.Users() != uint64(len(all)) || w.helper.Users() != uint64(len(all)) {
			rt.Fatalf("%d users: leader counts %d, helper %d", len(all), w.leader.Users(), w.helper.Users())
		}
		// What finish draws from the world's source is drawn again for the mixer.
		saved := rand.NewChaCha8([32]byte{})
		state, err := w.source.(*rand.ChaCha8).MarshalBinary()
		if err == nil {
			err = saved.UnmarshalBinary(state)
		}
		w.must(err)
		release, prepared, share := w.finish()
		w.source = saved
		e := [2]Entropy{{Fresh: w.bytes32(), Secret: [32]byte{34}}, {Fresh: w.bytes32(), Secret: [32]byte{36}}}
		drawn := 0
		m, err := shuffle.NewMixer(shuffle.Config{Params: cfg.Params, Cohort: 12, Minimum: 1, SideBySide: d, // any counts in range
			Entropy: func() rand.Source {
				seed := floorSeed(e[drawn], byte(drawn), prepared.Finish)
				drawn++
				return rand.NewChaCha8(seed)
			}})
		w.must(err)
		for i, counts := range all {
			if out := m.Add([]shuffle.ReportID{{byte(i)}}, cfg.Params.Pack(nil, counts)); out != shuffle.Accepted {
				rt.Fatalf("the mixer says %v", out)
			}
		}
		want, err := m.Close()
		w.must(err)
		if !slices.Equal(release.Totals, want.Totals) || release.Users != want.Users ||
			release.NoiseTrials != want.NoiseTrials {
			rt.Fatalf("released %v of %d users with %d trials, the mixer %v of %d with %d", release.Totals, release.Users,
				release.NoiseTrials, want.Totals, want.Users, want.NoiseTrials)
		}
		if bytes.Equal(prepared.Aggregate, share.Aggregate) {
			rt.Fatal("both shares are the same")
		}
	})
}

// A share alone has its party's floor in it, and no more: taking both floors off leaves the sum of the counts.
func TestEachPartyLaysOneFloor(t *testing.T) {
	cfg := config(3, 2, 8)
	w := newWorld(t, cfg, 1)
	sum := make([]uint64, 3)
	for range 5 {
		c := w.counts()
		add(sum, c)
		if out := w.send(w.message(c)); out[0] != Accepted {
			t.Fatal(out)
		}
	}
	saved := *w.source.(*rand.ChaCha8)
	release, prepared, _ := w.finish()
	w.source = &saved
	e := [2]Entropy{{Fresh: w.bytes32(), Secret: [32]byte{34}}, {Fresh: w.bytes32(), Secret: [32]byte{36}}}
	floors := floorsOf(t, cfg, prepared.Finish, e)
	for j, total := range release.Totals {
		if total != sum[j]+floors[leader][j]+floors[helper][j] {
			t.Errorf("coordinate %d: total %d, counts %d, floors %d and %d", j, total, sum[j], floors[leader][j],
				floors[helper][j])
		}
	}
	if slices.Equal(floors[leader], floors[helper]) {
		t.Error("both floors are the same draw")
	}
	if release.NoiseTrials != 2*cfg.Params.FloorTrials {
		t.Errorf("%d trials, want both floors'", release.NoiseTrials)
	}
}
