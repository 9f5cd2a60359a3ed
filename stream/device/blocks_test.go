package device_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
)

const (
	blockUnits = 4
	blockDim   = 40 // a coordinate for each row of any file
)

// newBlocks returns a world whose reports are about blocks of rows without noise of their own, so that a draw shows
// which rows are in it.
func newBlocks(t *testing.T, rounds, cohort uint64) *world {
	w := newWorld(t, plan{rounds: rounds, cohort: cohort, deadline: time.Minute, trust: accounting.Pan})
	var err error
	w.spec, err = task.Parse([]byte(strings.Replace(fmt.Sprintf(declaration, accounting.Pan, "none", "1", rounds*cohort),
		"dimension: 3", fmt.Sprint("dimension: ", blockDim), 1)), nil)
	must(t, err)
	w.task.Declaration, err = w.spec.Canonical()
	must(t, err)
	w.params = randomizer.Params{Dim: blockDim, ClipNorm: 1, Levels: 256, FloorTrials: 20000, Coin: randomizer.Fair,
		Units: blockUnits}
	w.task.Plan.Phases[0].Mechanism = manifest.Mechanism(w.params, 1)
	w.hash = taskHash(t, w.task)
	return w
}

// silo returns the client of an organisation whose reports are final.
func (w *world) silo(cfg device.Settings) *device.Device {
	cfg.Rows, cfg.Policy.MaxEpsilon = true, accounting.MaxEpsilon
	c := w.client(cfg)
	device.OnAgree(c, func(a *consent.Agreement) { a.Final, a.Spec.Silo = true, &task.Silo{Count: 2, Units: blockUnits} })
	return c
}

// A part is the rows of one file: each has a coordinate of its own, from first on.
type part struct {
	file        string
	first, rows int
}

// files yields the rows of files, of which the second is an empty line, that no reader yields, and the third no event.
func files(parts ...part) iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		for _, p := range parts {
			for i := range p.rows {
				row := task.Row{File: p.file, Line: int64(i) + 1, Number: int64(i), Index: []int32{int32(p.first + i)},
					Value: []float64{1}, Label: "1"}
				var err error
				switch i {
				case 1:
					continue
				case 2:
					err = &task.RowError{Line: row.Line, Reason: "test"}
				}
				if !yield(row, err) {
					return
				}
			}
		}
	}
}

// rowsIn counts for each coordinate the draws that hold it, of any event in any round.
func (s *spy) rowsIn(p randomizer.Params) (in [blockDim]int) {
	s.t.Helper()
	for _, rounds := range s.draws {
		for _, d := range rounds {
			counts, err := p.Unpack(nil, d.Counts)
			must(s.t, err)
			for i, c := range counts {
				// The gradient of a row is at least 1/2 where its score is not positive: a quarter of 32 levels and
				// more.
				if off := int(c) - int(p.Levels)/2; off < -3 || off > 3 {
					in[i]++
				}
			}
		}
	}
	return in
}

// checkRows insists that every row of the files is in one draw, but those that are none and those at the end that
// fill no block.
func (s *spy) checkRows(what string, p randomizer.Params, parts ...part) {
	s.t.Helper()
	in := s.rowsIn(p)
	for _, f := range parts {
		for i := range f.rows {
			want := 1
			if i == 1 || i == 2 || i >= f.rows-f.rows%blockUnits {
				want = 0
			}
			if got := in[f.first+i]; got != want {
				s.t.Errorf("%s: row %d of %s is in %d draws, want %d", what, i, f.file, got, want)
			}
		}
	}
}

// Two organisations send one block each in every round: the rows of a file four by four, whatever they hold, and none
// that spans two files.
func TestBlocksAreRangesOfRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBlocks(t, 4, 2)
		var spies [2]*spy
		var logs [2]bytes.Buffer
		w.play(t.Context(), func(ctx context.Context) {
			var group sync.WaitGroup
			for i := range spies {
				spies[i] = newSpy(t, participation.NewMemoryStore())
				cfg := w.config(spies[i])
				cfg.Source, cfg.Logger = fmt.Sprint("silo-", i), slog.New(slog.NewTextHandler(&logs[i], nil))
				group.Go(func() {
					sum, err := w.silo(cfg).Run(ctx, files(part{"a", 0, 11}, part{"b", 11, 9}))
					must(t, err)
					want := device.Summary{Events: 4, Units: 16, LeftOver: 4, Counted: 4, Invalid: 4, Rounds: 4}
					if sum != want {
						t.Errorf("%+v, want %+v", sum, want)
					}
				})
			}
			group.Wait()
		})
		for i, s := range spies {
			s.audit(w, spies[1-i])
			s.checkRows("", w.params, part{"a", 0, 11}, part{"b", 11, 9})
			if !strings.Contains(logs[i].String(), "too few for a block") {
				t.Errorf("nothing tells of rows that are left over:\n%s", logs[i].String())
			}
			rounds := map[stream.Round]int{}
			for _, drawn := range s.draws {
				for r := range drawn {
					rounds[r]++
				}
			}
			for r, n := range rounds {
				if n > 1 {
					t.Errorf("organisation %d has %d blocks in round %d", i, n, r)
				}
			}
		}
	})
}

// Wherever a device dies, and whatever files and rows come before it begins again, no row is in two draws and none is
// left out but those that fill no block.
func TestBlocksOverDeaths(t *testing.T) {
	for _, lost := range []bool{true, false} {
		died := true
		for i := 1; died; i++ {
			if i > 40 {
				t.Fatal("the run never gets by without the death")
			}
			synctest.Test(t, func(t *testing.T) {
				w := newBlocks(t, 7, 1)
				s := newSpy(t, participation.NewMemoryStore())
				s.failAt, s.lost = i, lost
				w.play(t.Context(), func(ctx context.Context) {
					run := func(parts ...part) error {
						short, stop := context.WithTimeout(ctx, 10*time.Minute)
						defer stop()
						_, err := w.silo(w.config(s)).Run(short, files(parts...))
						if errors.Is(err, context.DeadlineExceeded) {
							return nil
						}
						return err
					}
					err := run(part{"a", 0, 9}, part{"c", 9, 6})
					if died = errors.Is(err, errDied); !died {
						must(t, err)
					}
					s.failAt = 0
					after := []part{{"a", 0, 9}, {"b", 20, 8}, {"c", 9, 8}} // a file between the others, and more rows of one
					must(t, run(after...))
					s.audit(w)
					s.checkRows(fmt.Sprintf("death at write %d", i), w.params, after...)
				})
			})
		}
	}
}

// A live stream has no file: its blocks are taken as they fill, before it ends.
func TestBlocksOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBlocks(t, 2, 1)
		s := newSpy(t, participation.NewMemoryStore())
		cfg := w.config(s)
		cfg.Source = ""
		w.play(t.Context(), func(ctx context.Context) {
			sum, err := w.silo(cfg).Run(ctx, func(yield func(task.Row, error) bool) {
				for row, err := range files(part{"", 0, 10}) {
					if row.Number == 4 { // the fourth row is there, the fifth comes late
						time.Sleep(time.Hour)
						if n := s.drawn(); n != 1 {
							t.Errorf("%d blocks are drawn of four rows, want 1", n)
						}
					}
					if !yield(row, err) {
						return
					}
				}
			})
			must(t, err)
			if want := (device.Summary{Events: 2, Units: 8, LeftOver: 2, Counted: 2, Invalid: 2, Rounds: 2}); sum != want {
				t.Errorf("%+v, want %+v", sum, want)
			}
		})
		s.audit(w)
		s.checkRows("", w.params, part{"", 0, 10})
	})
}

// TestBlocksAreRefused: what is not done for blocks of rows yet, or cannot be, is refused before anything is sent.
func TestBlocksAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		config func(*device.Settings)
		agree  func(*consent.Agreement)
		field  string
	}{
		{"keys of rows", nil, func(a *consent.Agreement) { a.Spec.Events.Key = "id" }, "events.key"},
		{"another order", func(c *device.Settings) { c.Shuffle = 10 }, nil, "--shuffle"},
		{"a block that is too large", func(c *device.Settings) { c.MaxBlockRows = blockUnits*(blockDim+1) - 1 }, nil,
			"--max-block-rows"},
		{"one pass and many", nil, func(a *consent.Agreement) {
			a.Phases = append(a.Phases, a.Phases[0])
			a.Phases[1].Rounds = 2
		}, "rounds_per_user"},
		{"no silo", nil, func(a *consent.Agreement) { a.Spec.Silo = nil }, "units"},
		{"people of a stream", func(c *device.Settings) { c.Source = "-" }, func(a *consent.Agreement) {
			a.Spec.Privacy.Unit, a.Spec.User = task.UnitUser, &task.User{Column: "who", Items: 1, Wait: 1}
		}, "user.wait"},
		{"people with too many rows", func(c *device.Settings) { c.MaxBlockRows = 3*blockUnits*(blockDim+1) - 1 },
			func(a *consent.Agreement) {
				a.Spec.Privacy.Unit, a.Spec.User = task.UnitUser, &task.User{Column: "who", Items: 3}
			}, "--max-block-rows"},
		{"blocks that change", nil, func(a *consent.Agreement) {
			a.Phases = append(a.Phases, a.Phases[0])
			a.Phases[1].Params.Units++
		}, "units"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newBlocks(t, 2, 1)
			cfg := w.config(participation.NewMemoryStore())
			cfg.Rows, cfg.Policy.MaxEpsilon, cfg.Transport = true, accounting.MaxEpsilon, unwritable{cfg.Transport, t}
			if c.config != nil {
				c.config(&cfg)
			}
			dev := w.client(cfg)
			device.OnAgree(dev, func(a *consent.Agreement) {
				if a.Spec.Silo = (&task.Silo{Count: 2, Units: blockUnits}); c.agree != nil {
					c.agree(a)
				}
			})
			w.announce(t.Context(), 1)
			_, err := dev.Run(t.Context(), files(part{"a", 0, 11}))
			refusal(t, c.name, err, c.field)
		})
	}
}

// A silo offers a round one block, so ticks are made for one: its report leaves as soon as the work for that allows,
// and not as late as if as many as a gateway's events came with it.
func TestABlockLeavesSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		w := newBlocks(t, 1, 1)
		hash := w.announce(ctx, 1)
		w.open(ctx, 1, 1, hash)
		cfg := w.config(participation.NewMemoryStore())
		cfg.Work = func(*consent.Agreement) (func(), error) { return func() { time.Sleep(2 * time.Millisecond) }, nil }
		dev := w.silo(cfg)
		_, _ = dev.Run(ctx, files(part{"a", 0, 20}))
		if got := device.Within(dev); got != 20*time.Millisecond {
			t.Errorf("a report about a block that takes 2ms leaves within %v, want two ticks of 10ms", got)
		}
	})
}
