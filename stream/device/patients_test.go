package device_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// wards has the client of an organisation take its task for one that protects people, of two rows each.
func (w *world) wards(cfg device.Settings) *device.Device {
	cfg.Rows, cfg.Policy.MaxEpsilon = true, accounting.MaxEpsilon
	c := w.client(cfg)
	device.OnAgree(c, func(a *consent.Agreement) {
		a.Final, a.Spec.Silo = true, &task.Silo{Count: 2, Units: blockUnits}
		a.Spec.Privacy.Unit, a.Spec.User = task.UnitUser, &task.User{Column: "who", Items: 2}
	})
	return c
}

// named yields rows of the people that the letters name, each with the coordinate of its person.
func named(text string) iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		for i, who := range text {
			if !yield(task.Row{Line: int64(i) + 1, Number: int64(i), User: string(who), Index: []int32{who - 'a'},
				Value: []float64{1}, Label: "1"}, nil) {
				return
			}
		}
	}
}

// Wherever a device dies, and in whatever order it reads its rows again, with more people and without some, nobody is
// in two blocks, and all are in one but those who fill no block or came later.
func TestPatientsAreInOneBlock(t *testing.T) {
	const first, again = "abacdbefgghi", "zihgfxdccaaayyy" // without b and e
	for _, lost := range []bool{true, false} {
		died := true
		for i := 1; died; i++ {
			if i > 40 {
				t.Fatal("the run never gets by without the death")
			}
			synctest.Test(t, func(t *testing.T) {
				w := newBlocks(t, 4, 1)
				s := newSpy(t, participation.NewMemoryStore())
				s.failAt, s.lost = i, lost
				w.play(t.Context(), func(ctx context.Context) {
					run := func(text string) (device.Summary, error) {
						short, stop := context.WithTimeout(ctx, 10*time.Minute)
						defer stop()
						sum, err := w.wards(w.config(s)).Run(short, named(text))
						if errors.Is(err, context.DeadlineExceeded) {
							err = nil
						}
						return sum, err
					}
					_, err := run(first)
					if died = errors.Is(err, errDied); !died {
						must(t, err)
					}
					s.failAt = 0
					_, pinned, err := s.Pin()
					must(t, err)
					sum, err := run(again)
					must(t, err)
					s.audit(w)
					want := "abcdefgh" // as the first run reads them
					if !pinned {
						want = "zihgfxdc"
					}
					for at, n := range s.rowsIn(w.params) {
						who := string(rune('a' + at))
						// the block may be drawn without them
						in, gone := at < 26 && strings.Contains(want, who), died && !strings.Contains(again, who)
						if n > 1 || n == 1 && !in || n == 0 && in && !gone {
							t.Errorf("death at write %d: %s is in %d draws, and in a block: %t", i, who, n, in)
						}
					}
					if n := len(s.draws); n != 2 || sum.Events != 2 || sum.Units != 8 || sum.LeftOver == 0 {
						t.Errorf("death at write %d: %d draws, %+v, want two blocks of four people each", i, n, sum)
					}
				})
			})
		}
	}
}

// In many passes everybody is in each round, in one block with all of the own rows, whatever order files have after a
// restart; of more people than took part before the last are left over, and fewer are refused.
func TestPatientsInEveryRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSilos(t, accounting.Local, 4)
		s, other := newSpy(t, participation.NewMemoryStore()), newSpy(t, participation.NewMemoryStore())
		drew := map[stream.Round][]string{}
		dev := func(s *spy) *device.Device {
			cfg := w.config(s)
			cfg.Rows = true
			c := w.client(cfg)
			device.OnAgree(c, func(a *consent.Agreement) {
				a.Spec.Privacy.Unit, a.Spec.User = task.UnitUser, &task.User{Column: "who", Items: 2}
			})
			return c
		}
		tell := func(r stream.Round, b block.Block, p randomizer.Params) {
			var units []string
			for i := range b.Units() {
				at := func(x convex.Example) string { return fmt.Sprint(x.Index) }
				rows := make([]string, 0, 2)
				for _, x := range b.Unit(i) {
					rows = append(rows, at(x))
				}
				units = append(units, strings.Join(rows, "+"))
			}
			if p.Units != 14 || b.Units() != 14 {
				t.Errorf("round %d: %d people, %d planned for, want 14", r, b.Units(), p.Units)
			}
			slices.Sort(units)
			drew[r] = append(drew[r], strings.Join(units, " "))
		}
		w.play(t.Context(), func(ctx context.Context) {
			go func() { _, _ = dev(other).Run(ctx, named("abcdefghijkl")) }()
			for i, text := range []string{"aabcdefghijklmna", "nmlkjihgfedcbaaxy", "abc"} {
				short, stop := context.WithTimeout(ctx, 24*time.Hour)
				c := dev(s)
				device.OnReport(c, func(r stream.Round, b block.Block, p randomizer.Params) {
					if tell(r, b, p); i == 0 {
						stop() // after its first draw
					}
				})
				sum, err := c.Run(short, named(text))
				stop()
				switch {
				case i == 0 && !errors.Is(err, context.Canceled):
					t.Errorf("the first run ended with %v", err)
				case i == 1 && (err != nil || sum.Units != 14 || sum.LeftOver != 2 || sum.Counted != 1):
					t.Errorf("the second run: %+v, %v", sum, err)
				case i == 2:
					refusal(t, "fewer people", err, "people of this silo")
				}
			}
		})
		if len(drew) != 4 {
			t.Errorf("draws in rounds %v, want 4", drew)
		}
		for r, d := range drew {
			if len(d) != 1 || r > 1 && strings.Count(d[0], "+") != 1 {
				t.Errorf("round %d: %d draws of %q", r, len(d), d)
			}
		}
	})
}
