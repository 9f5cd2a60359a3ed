package stream

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A share that waits grows back to 1, for every announcement, deadline and speed of a stage, in half of the deadline
// or some minutes, or in 16 doublings and a quarter of one of the time that it holds for a stage that works for
// longer; the devices that may join at a time are those that the stage counts with.
func TestRampTendsToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.Uint32().Draw(t, "draw")
		deadline := time.Duration(rapid.Int64Range(-1, int64(1000*time.Hour)).Draw(t, "deadline"))
		work := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "work"))
		r := NewRamp(rapid.Float64Range(0, 1).Draw(t, "share"), work, deadline)
		most := 20 * time.Minute
		if deadline > 0 {
			most = max(deadline/2, 5*time.Second)
		}
		if held := min(4*work, max(time.Minute, deadline), time.Hour); r.Doubling <= held {
			most = max(most, held*65/4)
		}
		after := r.After(draw)
		if after < 0 || after > most {
			t.Fatalf("%+v, draw %d, deadline %v: joins after %v", r, draw, deadline, after)
		}
		if got := r.Share(most); got != 1 {
			t.Fatalf("share %v after %v", got, most)
		}
		// The share at the moment of joining is the draw itself: no more, no fewer.
		u := (float64(draw) + 1) / (1 << 32)
		got := r.Share(after)
		if after == 0 && u > got+1e-6 || after > 0 && math.Abs(got-u) > 1e-6 { // a Duration has nanoseconds
			t.Fatalf("share %v when the device with %v joins after %v", got, u, after)
		}
		if again := RampOf(r.Probability, uint32(r.Doubling.Milliseconds())); again != r {
			t.Fatalf("%+v is announced as %+v", r, again)
		}
	})
	if RampOf(1, 0).Doubling <= 0 {
		t.Error("an Open that says nothing has all join at once")
	}
	for _, of := range []float64{1, 2, math.Inf(1), math.NaN()} {
		if got := NewRamp(of, 0, time.Hour); got.Probability != 0 {
			t.Errorf("share %v becomes %+v, want everybody", of, got)
		}
	}
	if NewRamp(0, 0, 0).Probability == 0 {
		t.Error("nobody becomes everybody")
	}
}

// While a stage opens the reports of a cohort hardly more devices join, and none where it works for up to a quarter of
// its deadline. Where it works for longer than a minute they are a few times as many, and not all.
func TestRampWaitsForTheStage(t *testing.T) {
	for _, c := range []struct {
		deadline, work time.Duration
		most           float64
	}{
		{0, 5 * time.Second, 1.1}, {10 * time.Minute, 5 * time.Second, 1.1}, {time.Minute, 5 * time.Second, 1},
		{time.Minute, 15 * time.Second, 1},
		{6 * time.Second, 10 * time.Second, 1}, {time.Minute, 70 * time.Second, 2}, {5 * time.Minute, 70 * time.Second, 1},
	} {
		r := NewRamp(0.1, c.work, c.deadline)
		if grown := r.Share(c.work) / r.Share(0); grown > c.most+1e-9 {
			t.Errorf("deadline %v: %v times as many join while the stage works for %v", c.deadline, grown, c.work)
		}
	}
}

// TestReserveJoinsBeforeTheDeadline: who comes late has a time to join in every round, however soon it closes.
func TestReserveJoinsBeforeTheDeadline(t *testing.T) {
	for deadline, want := range map[time.Duration]time.Duration{
		0: 16 * time.Second, time.Second: 500 * time.Millisecond, 3 * time.Second: 1500 * time.Millisecond,
		4 * time.Second: 2 * time.Second,
		8 * time.Second: 4 * time.Second, time.Minute: 30 * time.Second, time.Hour: 8 * time.Minute,
	} {
		if got := ReserveAfter(deadline); got != want {
			t.Errorf("deadline %v: after %v, want %v", deadline, got, want)
		}
	}
}

// The events of one client join by its part of the share, whatever else is random; those that it did not count on draw
// by themselves.
func TestLotsArePartsOfAllDraws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1000).Draw(t, "events")
		share := rapid.Float64Range(0.001, 1).Draw(t, "share")
		l := NewLots(uint64(n), rapid.Uint32().Draw(t, "within"))
		joined := 0
		for range n {
			if float64(l.Next(7))/(1<<32) < share {
				joined++
			}
		}
		if math.Abs(float64(joined)-share*float64(n)) > 1 {
			t.Fatalf("%d of %d join at a share of %v", joined, n, share)
		}
		if got := l.Next(7); got != 7 {
			t.Fatalf("one more draws %d", got)
		}
	})
}

// Organisations that come in the order of their turns report equally often, as drawn: none is two reports ahead of
// another, and who comes first changes. Where they reported otherwise than asked, most of them still do not come at
// once.
func TestTurnsAreEven(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ of, cohort uint64 }{{20, 10}, {7, 3}, {20, 19}, {6, 1}} {
		took, led := make([]uint64, c.of), map[int]bool{}
		for round := range uint64(40) {
			order, draws := make([]int, c.of), make([]uint32, c.of)
			for i := range order {
				order[i], draws[i] = i, Turn(rng.Uint32(), took[i], round*c.cohort, c.of, c.cohort)
			}
			slices.SortFunc(order, func(i, j int) int { return cmp.Compare(draws[i], draws[j]) })
			for _, i := range order[:c.cohort] {
				took[i]++
			}
			led[order[0]] = true
			if slices.Max(took) > slices.Min(took)+1 {
				t.Fatalf("%+v: after round %d they reported %d times", c, round+1, took)
			}
		}
		if len(led) < min(5, int(c.of)) {
			t.Errorf("%+v: %d of them come first in 40 rounds", c, len(led))
		}
		for _, took := range []uint64{0, 100} {
			for asked := range 2 * c.of {
				first, last := Turn(0, took, 4*c.of+asked, c.of, c.cohort), Turn(math.MaxUint32, took, 4*c.of+asked, c.of, c.cohort)
				if width := float64(last-first) / (1 << 32); width < min(0.2499, float64(c.cohort)/float64(2*c.of)-1e-6) {
					t.Errorf("%+v, %d times of %d: all come within %v of the draws", c, took, asked, width)
				}
			}
		}
	}
}

// TestAskRamp: asking costs nothing, so twice as many ask after each second.
func TestAskRamp(t *testing.T) {
	r := AskRamp(0.1)
	for _, c := range []struct {
		after time.Duration
		want  float64
	}{{0, 0.1}, {250 * time.Millisecond, 0.1}, {1250 * time.Millisecond, 0.2}, {2250 * time.Millisecond, 0.4}, {time.Minute, 1}} {
		if got := r.Share(c.after); got < c.want*0.999 || got > c.want*1.001 {
			t.Errorf("%v after Open a share of %v asks, want %v", c.after, got, c.want)
		}
	}
	if all := AskRamp(2); all.Probability != 0 || all.Doubling != time.Second {
		t.Errorf("%+v: want that everybody asks", all)
	}
}
