package device_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
)

// byUser has the client take its task for one that protects people.
func byUser(c *device.Device, items int, wait time.Duration) {
	device.OnAgree(c, func(a *consent.Agreement) {
		a.Spec.Privacy.Unit, a.Spec.User = task.UnitUser, &task.User{Column: "who", Items: items, Wait: task.Duration(wait)}
	})
}

// rowsOf yields a row of each of some people, who are numbers.
func rowsOf(from, to int) iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		for i := from; i < to; i++ {
			if !yield(task.Row{Line: int64(i) + 1, Number: int64(i), User: strconv.Itoa(i), Index: []int32{0},
				Value: []float64{1}, Label: "1"}, nil) {
				return
			}
		}
	}
}

// letters yields rows of the people that the letters name, one a second from begun on; a dash is nobody's, a blank no
// row. Each has a coordinate of its own.
func letters(text string, begun time.Time) iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		for i, who := range text {
			if time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second))); who == ' ' {
				continue
			}
			row := task.Row{Line: int64(i) + 1, Number: int64(i), Index: []int32{int32(i)}, Value: []float64{1}, Label: "1"}
			if who != '-' {
				row.User = string(who)
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// newPeople returns a world whose draws show which rows are in them.
func newPeople(t *testing.T, rounds, cohort uint64) *world {
	w := newBlocks(t, rounds, cohort)
	w.params.Units = 0
	w.task.Plan.Phases[0].Mechanism = manifest.Mechanism(w.params, 1)
	w.hash = taskHash(t, w.task)
	return w
}

// checkLetters insists that the rows at these places are each in one draw, and no others.
func (s *spy) checkLetters(w *world, what, text, in string) {
	s.t.Helper()
	draws := s.rowsIn(w.params)
	for i := range text {
		want := 0
		if in[i] == '1' {
			want = 1
		}
		if draws[i] != want {
			s.t.Errorf("%s: row %d of %q is in %d draws, want %d", what, i, text, draws[i], want)
		}
	}
}

// Everybody reports once, about the own first rows, whatever the order, in this run and in a later one with more rows
// of them, and under the key of the name.
func TestPeopleReportOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPeople(t, 2, 3)
		s := newSpy(t, participation.NewMemoryStore())
		run := func(ctx context.Context, text string) device.Summary {
			cfg := w.config(s)
			cfg.Rows, cfg.Policy.MaxEpsilon = true, accounting.MaxEpsilon
			dev := w.client(cfg)
			byUser(dev, 2, 0)
			sum, err := dev.Run(ctx, letters(text, time.Now()))
			must(t, err)
			return sum
		}
		w.play(t.Context(), func(ctx context.Context) {
			if got, want := run(ctx, "abba-cab"), (device.Summary{Events: 3, Units: 3, Surplus: 2, Counted: 3, Keyless: 1,
				Rounds: 1}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			s.checkLetters(w, "first run", "abba-cab", "11110100")
			if got, want := run(ctx, "        cdbaefed"), (device.Summary{Events: 6, Units: 6, Counted: 6,
				Rounds: 2}); got != want {
				t.Errorf("again: %+v, want %+v", got, want)
			}
			s.checkLetters(w, "both runs", "abba-cabcdbaefed", "1111010001001111")
		})
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			if n := len(s.draws[participation.EventKey(id)]); n != 1 {
				t.Errorf("%s has %d draws, want 1", id, n)
			}
		}
	})
}

// In a stream a person is asked at the end of the own wait, and not before, with what came by then.
func TestPeopleOfAStreamWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPeople(t, 4, 1)
		s := newSpy(t, participation.NewMemoryStore())
		cfg := w.config(s)
		cfg.Rows, cfg.Source, cfg.Policy.MaxEpsilon = true, "", accounting.MaxEpsilon
		dev := w.client(cfg)
		byUser(dev, 2, time.Hour)
		w.play(t.Context(), func(ctx context.Context) {
			begun := time.Now()
			sum, err := dev.Run(ctx, func(yield func(task.Row, error) bool) {
				for row, err := range letters("ababa-", begun) {
					if !yield(row, err) {
						return
					}
				}
				time.Sleep(50 * time.Minute)
				if n := s.drawn(); n != 0 {
					t.Errorf("%d people are drawn before the end of their wait", n)
				}
				time.Sleep(20 * time.Minute)
				if n := s.drawn(); n != 2 {
					t.Errorf("%d people are drawn after their wait, want 2", n)
				}
				yield(task.Row{Number: 7, User: "a", Index: []int32{7}, Value: []float64{1}, Label: "1"}, nil)
			})
			must(t, err)
			if want := (device.Summary{Events: 2, Units: 2, Surplus: 2, Counted: 2, Keyless: 1, Rounds: 2}); sum != want {
				t.Errorf("%+v, want %+v", sum, want)
			}
			s.checkLetters(w, "stream", "ababa- a", "11110000")
		})
	})
}

// Rows that break off, or have more people than there is room for, are of nobody yet.
func TestPeopleOfBrokenFiles(t *testing.T) {
	broken := errors.New("broken")
	for _, most := range []uint64{0, (blockDim + 1) * 4} {
		synctest.Test(t, func(t *testing.T) {
			w := newPeople(t, 4, 1)
			s := newSpy(t, participation.NewMemoryStore())
			cfg := w.config(s)
			cfg.Rows, cfg.MaxBlockRows, cfg.Policy.MaxEpsilon = true, most, accounting.MaxEpsilon
			dev := w.client(cfg)
			byUser(dev, 2, time.Hour)
			w.play(t.Context(), func(ctx context.Context) {
				sum, err := dev.Run(ctx, func(yield func(task.Row, error) bool) {
					for row, err := range rowsOf(0, 3) {
						if !yield(row, err) {
							return
						}
					}
					if most == 0 {
						yield(task.Row{}, broken)
					}
				})
				if err == nil || errors.Is(err, broken) != (most == 0) || sum.Events != 0 || len(s.draws) != 0 {
					t.Errorf("room for %d: %+v, %v, %d draws", most, sum, err, len(s.draws))
				}
			})
		})
	}
}

// A chargedAt is a Store that notes who is charged when.
type chargedAt struct {
	participation.Store
	begun time.Time
	log   []string
}

func (s *chargedAt) Write(c participation.Change) error {
	for _, p := range c.Events {
		if p.State == participation.Charged && len(p.Sends) == 1 && p.Sends[0].Sent == 1 && p.Sends[0].Acked == 0 {
			s.log = append(s.log, fmt.Sprintf("%x %v", p.Key[:4], time.Since(s.begun)))
		}
	}
	return s.Store.Write(c)
}

// However many rows one person has, everybody takes part in the same order and at the same times: of files, of a
// stream with waits, and posted.
func TestRowsOfOneMoveNobody(t *testing.T) {
	for _, from := range []string{"files", "stream", "posts"} {
		var want string
		for _, text := range []string{"a b  c d  e", "aab  c d  e", "aabaacadaaeaaa", "a b  c d  eaaaa"} {
			synctest.Test(t, func(t *testing.T) {
				w := newPeople(t, 1, 20)
				w.open(t.Context(), 1, 1, w.announce(t.Context(), 1))
				seen := &chargedAt{Store: participation.NewMemoryStore()}
				cfg := w.config(seen)
				cfg.Rows, cfg.Policy.MaxEpsilon = from != "posts", accounting.MaxEpsilon
				if from == "stream" {
					cfg.Source = ""
				}
				dev := w.client(cfg)
				byUser(dev, 2, time.Minute)
				ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
				defer stop()
				_, err := dev.Agreement(ctx)
				must(t, err)
				time.Sleep(time.Second)
				begun := time.Now().Truncate(time.Second).Add(time.Second)
				time.Sleep(time.Until(begun))
				seen.begun = begun
				switch from {
				case "posts":
					for i, id := range "abcde" {
						go func() {
							time.Sleep(time.Duration(i) * time.Second)
							_, _ = dev.PublishBlock(ctx, participation.EventKey(string(id)),
								at(make([]int32, strings.Count(text, string(id)))...)...)
						}()
					}
					<-ctx.Done()
					_ = dev.Close()
				default:
					if from == "files" { // which are there
						begun = begun.Add(-time.Hour)
					}
					_, err := dev.Run(ctx, letters(text, begun))
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				}
				got := strings.Join(seen.log, " ")
				if want == "" {
					want = got
				}
				if len(seen.log) != 5 || got != want {
					t.Errorf("%s of %q: %s; want %s", from, text, got, want)
				}
			})
		}
	}
}
