package shuffle

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The mixer against a model that keeps the set of counted users, over random interleavings of single reports, bundles,
// repetitions, garbage and closes.
func TestMixerAgainstModel(t *testing.T) {
	const population = 12
	p := hot(population)
	rapid.Check(t, func(rt *rapid.T) {
		cohort := rapid.IntRange(1, 10).Draw(rt, "cohort")
		cfg := Config{Params: p, Cohort: uint64(cohort),
			Minimum:   uint64(rapid.IntRange(1, cohort).Draw(rt, "minimum")),
			MaxBundle: uint64(rapid.IntRange(1, min(4, cohort)).Draw(rt, "bundle"))}
		m := mustMixer(t, cfg)
		counted := map[int]bool{}
		closed := false
		users := rapid.SliceOfN(rapid.IntRange(0, population-1), 0, 5)

		expect := func(list []int, good bool) Outcome {
			switch {
			case closed:
				return Closed
			case len(list) == 0 || len(list) > int(cfg.MaxBundle):
				return BadBundle
			}
			for i, u := range list {
				if counted[u] || slices.Contains(list[:i], u) {
					return Duplicate
				}
			}
			switch {
			case len(counted) >= cohort:
				return full
			case !good:
				return BadRange
			}
			return Accepted
		}
		add := func(rt *rapid.T, good bool) {
			list := users.Draw(rt, "users")
			ids, packed := bundle(p, list...)
			if !good && len(packed) > 0 {
				packed[len(packed)-1] |= 0b11 << 6 // the last count becomes 3, above MaxCount
			}
			want := expect(list, good)
			got := m.Add(ids, packed)
			if got != want {
				rt.Fatalf("adding %v: %v, want %v", list, got, want)
			}
			if got == Accepted {
				for _, u := range list {
					counted[u] = true
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"add":     func(rt *rapid.T) { add(rt, true) },
			"damaged": func(rt *rapid.T) { add(rt, false) },
			"close": func(rt *rapid.T) {
				rel, err := m.Close()
				switch {
				case closed:
					if !errors.Is(err, errClosed) {
						rt.Fatalf("closed twice: %v", err)
					}
				case len(counted) < int(cfg.Minimum):
					if !errors.Is(err, errCohortTooSmall) {
						rt.Fatalf("closed below the minimum: %v", err)
					}
				default:
					if err != nil {
						rt.Fatal(err)
					}
					closed = true
					for u, n := range rel.Totals {
						if want := map[bool]uint64{true: 1}[counted[u]]; n != want {
							rt.Fatalf("user %d counted %d times, want %d", u, n, want)
						}
					}
					if rel.Users != uint64(len(counted)) {
						rt.Fatalf("release of %d users, want %d", rel.Users, len(counted))
					}
				}
			},
			"": func(rt *rapid.T) {
				if m.Users() != uint64(len(counted)) || m.Full() != (len(counted) >= cohort) ||
					m.CanClose() != (!closed && len(counted) >= int(cfg.Minimum)) {
					rt.Fatalf("%v; the model has %d users", m, len(counted))
				}
				if m.Users() > cfg.Cohort+cfg.MaxBundle-1 {
					rt.Fatalf("%v exceeds the cohort by a bundle", m)
				}
			},
		})
	})
}

// Whatever is added ends in an outcome, and only whole reports in range change the totals.
func FuzzAdd(f *testing.F) {
	f.Add(uint8(1), []byte{1, 0, 0})
	f.Add(uint8(2), []byte{1, 0, 0, 0, 1, 0})
	f.Add(uint8(3), []byte{0xff, 0xff, 0xff})
	p := hot(12)
	f.Fuzz(func(t *testing.T, users uint8, packed []byte) {
		m := mustMixer(t, Config{Params: p, Cohort: 8, Minimum: 1, MaxBundle: 4})
		ids := make([]ReportID, users)
		for i := range ids {
			ids[i] = name(i)
		}
		out := m.Add(ids, packed)
		var sum uint64
		for _, n := range m.totals {
			sum += n
		}
		switch {
		case out == Accepted && (m.Users() != uint64(users) || m.ids.len() != int(users) ||
			len(packed) != int(users)*p.ReportBytes()):
			t.Fatalf("%v after accepting %d users in %d bytes", m, users, len(packed))
		case out != Accepted && (m.Users() != 0 || m.ids.len() != 0 || sum != 0):
			t.Fatalf("%v after %v", m, out)
		}
		if sum > uint64(p.Dim)*uint64(p.MaxCount())*m.Users() {
			t.Fatal("totals above what the users can have")
		}
	})
}
