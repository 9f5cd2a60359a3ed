package device_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// alike yields n rows, each as one returns it.
func alike(n int, one func(i int) (task.Row, error)) iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		for i := range n {
			row, err := one(i)
			row.File, row.Line, row.Number = "a", int64(i)+1, int64(i)
			if !yield(row, err) {
				return
			}
		}
	}
}

func fitting(i int) (task.Row, error) {
	return task.Row{Index: []int32{int32(i % blockDim)}, Value: []float64{1}, Label: "1"}, nil
}
func quick(i int) (task.Row, error) {
	return task.Row{Index: []int32{int32(i % blockDim)}, Value: []float64{0.5}, Label: "1"}, nil
}
func misfit(i int) (task.Row, error) {
	return task.Row{Index: []int32{int32(i % blockDim)}, Value: []float64{1}, Label: "maybe"}, nil
}
func blank(int) (task.Row, error) { return task.Row{}, &task.RowError{Reason: "an empty line"} }

// What the rows of a silo hold decides neither whether it appears, nor when, nor how large its report is: not even
// where none of them fits. How many there are decides, which is public.
func TestContentOfASiloShowsNowhere(t *testing.T) {
	for _, rounds := range []int{1, 4} {
		see := func(n int, one func(int) (task.Row, error)) (seen []string) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				w := newSilos(t, accounting.Local, rounds)
				w.open(ctx, 1, 1, w.announce(ctx, 1))
				c := w.config(participation.NewMemoryStore())
				watch := &watcher{Transport: c.Transport, begun: time.Now()}
				c.Transport, c.Rows = watch, true
				dev := w.client(c)
				device.OnMap(dev, func(row task.Row) {
					if row.Value[0] == 1 && row.Label != "maybe" {
						time.Sleep(3 * time.Millisecond)
					}
				})
				var group sync.WaitGroup
				group.Go(func() {
					_, _ = dev.Run(ctx, func(yield func(task.Row, error) bool) {
						time.Sleep(time.Until(watch.begun.Add(known)))
						alike(n, one)(yield)
					})
				})
				time.Sleep(2 * time.Minute)
				stop()
				group.Wait()
				seen = watch.seen
			})
			return seen
		}
		want := see(40, fitting)
		if len(want) != 1 {
			t.Fatalf("%d rounds: %q, want one report", rounds, want)
		}
		for name, one := range map[string]func(int) (task.Row, error){"rows that are quick": quick, "misfits": misfit,
			"blank lines": blank} {
			if got := see(40, one); !slices.Equal(got, want) {
				t.Errorf("%d rounds: of %s %q is seen, of slow ones %q", rounds, name, got, want)
			}
		}
		if got := see(5000, fitting); rounds > 1 && slices.Equal(got, want) { // read within another span
			t.Errorf("%d rows are seen as 40 are: this test sees nothing: %q, %q", 5000, got, want)
		}
	}
}

// How long reading takes depends on how many rows somebody has, and on how long they are. Where rows are read to their
// end first, when reports leave does not, within a span.
func TestReadingShowsNowhere(t *testing.T) {
	see := func(rounds, rows int) (seen []string) {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			w := newPeople(t, 1, 3)
			if rounds > 0 {
				w = newSilos(t, accounting.Local, rounds)
			}
			w.open(ctx, 1, 1, w.announce(ctx, 1))
			c := w.config(participation.NewMemoryStore())
			watch := &watcher{Transport: c.Transport, begun: time.Now()}
			c.Transport, c.Rows, c.Policy.MaxEpsilon = watch, true, accounting.MaxEpsilon
			dev := w.client(c)
			slow, n := time.Millisecond, 40
			switch {
			case rounds == 0:
				byUser(dev, 2, 0)
				n = 3 + rows
			case rounds > 1:
				slow *= time.Duration(rows)
			}
			var group sync.WaitGroup
			group.Go(func() {
				_, _ = dev.Run(ctx, alike(n, func(i int) (task.Row, error) {
					time.Sleep(max(slow, time.Until(watch.begun.Add(known))))
					row, err := fitting(i)
					row.User = fmt.Sprint(min(i, 2)) // the third has all further rows
					return row, err
				}))
			})
			time.Sleep(time.Minute)
			stop()
			group.Wait()
			seen = watch.seen
		})
		return seen
	}
	for rounds, reports := range map[int]int{0: 3, 4: 1} { // people, and a silo in many passes
		few, many := see(rounds, 1), see(rounds, 150)
		if len(few) != reports || !slices.Equal(few, many) {
			t.Errorf("%d rounds: of few rows, or short ones, %q is seen, of more %q", rounds, few, many)
		}
	}
}

// What may be held is a number of rows, whatever is in them.
func TestLimitsOfASiloCountRows(t *testing.T) {
	for _, one := range []func(int) (task.Row, error){fitting, misfit, blank} {
		for rows, refused := range map[int]bool{14: false, 15: true} {
			synctest.Test(t, func(t *testing.T) {
				w := newSilos(t, accounting.Local, 2)
				cfg := w.config(participation.NewMemoryStore())
				cfg.Rows, cfg.MaxBlockRows = true, 15*(blockDim+1)-1
				w.play(t.Context(), func(ctx context.Context) {
					sum, err := w.client(cfg).Run(ctx, alike(rows, one))
					if refused {
						refusal(t, fmt.Sprint(rows, " rows"), err, "--max-block-rows")
					} else if err != nil || sum.Counted != 1 {
						t.Errorf("%d rows: %+v, %v", rows, sum, err)
					}
				})
			})
		}
	}
}

// Rows that break off are no silo's: what came before the error is not sent as if it were all.
func TestRowsThatBreakOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSilos(t, accounting.Local, 2)
		cfg := w.config(participation.NewMemoryStore())
		cfg.Rows, cfg.Transport = true, unwritable{cfg.Transport, t}
		broken := errors.New("broken")
		w.play(t.Context(), func(ctx context.Context) {
			_, err := w.client(cfg).Run(ctx, func(yield func(task.Row, error) bool) {
				for row, err := range alike(20, fitting) {
					if !yield(row, err) {
						return
					}
				}
				yield(task.Row{}, broken)
			})
			if !errors.Is(err, broken) {
				t.Error(err)
			}
		})
	})
}

// Over deaths with a real file, a silo in one pass has no row in two blocks and loses none but a tail, and one in many
// passes has the rows and the noise of before in every round.
func TestSilosDieWithAFile(t *testing.T) {
	for _, rounds := range []int{1, 4} {
		for i := 1; i <= 9; i += 2 {
			path := filepath.Join(t.TempDir(), "state", "churn.participation")
			synctest.Test(t, func(t *testing.T) {
				w := newSilos(t, accounting.Local, rounds)
				store := &reopened{t: t, path: path}
				store.reopen()
				defer store.close()
				o := w.organisation(store)
				o.failAt, o.lost = i, i%4 == 1
				var sum device.Summary
				var pins []participation.Pin
				w.play(t.Context(), func(ctx context.Context) {
					_, err := o.run(ctx, "x", part{"a", 0, 13})
					if !errors.Is(err, errDied) {
						must(t, err)
					}
					o.failAt = 0
					for range 2 { // what is stored then, and in the end
						store.reopen()
						pin, pinned, err := o.Pin()
						must(t, err)
						if pinned {
							pins = append(pins, pin)
						}
						if sum, err = o.run(ctx, "x", part{"a", 0, 13}); err != nil {
							t.Error(err)
						}
					}
				})
				o.audit(w)
				if len(pins) == 0 || fmt.Sprint(pins[0]) != fmt.Sprint(pins[len(pins)-1]) {
					t.Errorf("death at write %d: stored %v", i, pins)
				}
				blocks := map[int]bool{} // rows that a durable draw is about, by the first of the block
				durable := 0
				for r, all := range o.drew {
					last := all[len(all)-1] // of several draws for one round none was durable but the last
					for key := range o.draws {
						if _, ok := o.draws[key][r]; ok {
							durable++
							if rounds == 1 && blocks[first(last.rows)] {
								t.Errorf("death at write %d: rows %v are in two blocks", i, last.rows)
							}
							blocks[first(last.rows)] = true
						}
					}
					if rounds > 1 && len(last.rows) != 13 || rounds == 1 && len(last.rows) != blockUnits {
						t.Errorf("death at write %d: rows %v in round %d", i, last.rows, r)
					}
				}
				if rounds == 1 && (sum.LeftOver != 1 || len(blocks) != 3 || durable != 3) || rounds > 1 && sum.Units != 13 {
					t.Errorf("death at write %d: %+v, blocks %v, %d draws", i, sum, blocks, durable)
				}
			})
		}
	}
}

// first returns where a block begins: rows that fit come after at most two that do not.
func first(rows []int) int {
	for i, r := range rows {
		if r >= 0 {
			return r - i
		}
	}
	return -1
}
