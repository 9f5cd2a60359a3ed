package stage

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// newSilos returns a world of five silos that trust nobody, all of which are asked in both rounds.
func newSilos(t testing.TB) *world {
	w := newWorld(t, plan{cohort: 5, minimum: 3, deadline: time.Minute})
	w.params = randomizer.Params{Dim: 5, ClipNorm: 1, Levels: 100, Trials: 64, Coin: randomizer.Fair, Units: 10,
		Window: 40}
	p := w.task.Plan
	p.Trust, p.Silos = wire.Trust_TRUST_LOCAL, 5
	p.Phases = []*wire.Phase{{Users: 5, Rounds: 2, Cohort: 5, Minimum: 3, RoundsPerUser: 2,
		Mechanism: manifest.Mechanism(w.params, 1)}}
	body, err := stream.Marshal(w.task)
	if err != nil {
		t.Fatal(err)
	}
	w.hash = stream.HashOf(body)
	return w
}

// says sends one report of the same count in each coordinate.
func (w *world) says(in *invitation, count uint32) {
	wider := w.params
	wider.Window += 2 // of the same width, and packs what lies beyond too
	packed := wider.Pack(nil, slices.Repeat([]uint32{count}, w.params.Dim))
	w.send(w.t.Context(), in, w.seal(in, [][16]byte{randomID()}, packed))
}

// asked returns the share of the silos, of 2^32, which the newest attempt at a round asks at first; 0 is all.
func (w *world) asked(r stream.Round) uint32 {
	var open wire.Open
	m, err := w.broker.Latest(w.t.Context(), w.name.Opens(r))
	if err == nil {
		_, err = seal.Verify(m.Data, w.stage.Public(), &open)
	}
	if err != nil {
		w.t.Error(err)
	}
	return open.JoinProbability
}

// TestLocalAddsNothing: under local nobody's noise is shared. What is missing at the deadline is not topped up, totals
// are the sums of what silos sent, which lies within the window, both its ends among them; and all silos are asked at
// once, in every round.
func TestLocalAddsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSilos(t)
		w.announce(t.Context())
		_, stop := w.start(w.config())
		most := w.params.Levels + w.params.Window
		for r, counts := range [][]uint32{{0, most, 71, most + 1}, {most + 1, 50, 60, 70, 0}} {
			number := stream.Round(r + 1)
			if r > 0 {
				w.put(t.Context(), w.name.Round(number), w.sign(w.learner, w.round(number, uint64(number))))
			}
			in := w.invited(t.Context(), number, 0)
			if share := w.asked(number); share != 0 {
				t.Errorf("round %d: a share of %d of 2^32 is asked at first: want all", number, share)
			}
			var users, sum uint64
			for _, c := range counts {
				if w.says(in, c); c <= most {
					users, sum = users+1, sum+uint64(c)
				}
			}
			time.Sleep(50 * time.Second)
			if b, _ := w.batch(number); b != nil {
				t.Fatalf("round %d is released before the deadline", number)
			}
			time.Sleep(15 * time.Second)
			b, _ := w.batch(number)
			if b == nil || b.Void || b.Users != users || b.NoiseTrials != users*64 ||
				!slices.Equal(b.Totals, slices.Repeat([]uint64{sum}, 5)) {
				t.Fatalf("round %d: batch %v: want %d silos with %d trials, and totals of %d", number, b, users, users*64, sum)
			}
			if len(b.Rejects) != 1 || b.Rejects[0].Reason != Range.String() || b.Rejects[0].Count != 1 {
				t.Errorf("round %d: rejects %v: want one count beyond the window", number, b.Rejects)
			}
		}
		_ = stop()
	})
}

// TestAnotherAttemptAsksAllSilos: where every silo has a place in the round, a stage that opens it again asks all of
// them at once: their reports are what the attempt before had, and there are no others to keep away. Of more silos
// than places a quarter of what would fill the round is asked at first, and fewer beside those who send again.
func TestAnotherAttemptAsksAllSilos(t *testing.T) {
	for _, silos := range []uint64{5, 6} {
		synctest.Test(t, func(t *testing.T) {
			w := newSilos(t)
			p := w.task.Plan
			p.Silos, p.Phases[0].Users, p.Phases[0].RoundsPerUser = silos, 10, 1 // two rounds of five
			body, err := stream.Marshal(w.task)
			if err != nil {
				t.Fatal(err)
			}
			w.hash = stream.HashOf(body)
			w.announce(t.Context())
			_, stop := w.start(w.config())
			w.says(w.invited(t.Context(), 1, 0), 7)
			if share := w.asked(1); (share == 0) != (silos == 5) || share > 1<<30 {
				t.Errorf("of %d silos a share of %d of 2^32 is asked at first", silos, share)
			}
			_ = stop()
			_, stop = w.start(w.config())
			w.invited(t.Context(), 1, 1)
			if share := w.asked(1); (share == 0) != (silos == 5) {
				t.Errorf("of %d silos a share of %d of 2^32 is asked at first in the second attempt", silos, share)
			}
			_ = stop()
		})
	}
}
