package device_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A watcher notes what the broker sees of a device: when a publish came, and how large its messages are.
type watcher struct {
	stream.Transport
	begun time.Time
	mu    sync.Mutex
	seen  []string
}

func (w *watcher) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	w.mu.Lock()
	for _, r := range reports {
		w.seen = append(w.seen, fmt.Sprint(time.Since(w.begun), " ", len(r.Data)))
	}
	w.mu.Unlock()
	return w.Transport.Publish(ctx, reports)
}

// known is the time by which a device has read the newest round: it polls at random times, which have nothing to
// do with rows.
const known = 20 * time.Second

// seenOf returns what the broker sees of a run of rows, where mapping a row takes the time that takes returns.
func seenOf(t *testing.T, cohort uint64, keyed bool, rows iter.Seq2[task.Row, error],
	takes func(task.Row) time.Duration) (seen []string) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w := newWorld(t, plan{rounds: 1, cohort: cohort, deadline: time.Hour})
		if keyed {
			w.keyed()
		}
		hash := w.announce(ctx, 1)
		w.open(ctx, 1, 1, hash)
		c := w.config(participation.NewMemoryStore())
		watch := &watcher{Transport: c.Transport, begun: time.Now()}
		c.Transport, c.Rows = watch, true
		dev := w.client(c)
		device.OnMap(dev, func(row task.Row) { time.Sleep(takes(row)) })
		var group sync.WaitGroup
		group.Go(func() {
			_, _ = dev.Run(ctx, func(yield func(task.Row, error) bool) {
				time.Sleep(time.Until(watch.begun.Add(known)))
				rows(yield)
			})
		})
		time.Sleep(time.Minute)
		stop()
		group.Wait()
		seen = watch.seen
	})
	return seen
}

// costs returns measured times of mapping a row: a dense one, a sparse one, and one that does not fit.
func costs(row task.Row) time.Duration {
	switch {
	case len(row.Value) == 3 || len(row.Fields) > 0 && row.Fields[0] != "": // also the decoy
		return 4600 * time.Microsecond
	case len(row.Value) == 1:
		return 26 * time.Microsecond
	}
	return 400 * time.Nanosecond
}

// A row that does not fit takes the work of one that does.
func TestRowsThatDoNotFitTakeWork(t *testing.T) {
	const n = 40
	work := func(broken bool) (calls int) {
		seenOf(t, n, false, func(yield func(task.Row, error) bool) {
			for i := range n {
				row := task.Row{Line: int64(i) + 1, Number: int64(i)}
				var err error
				if row.Value, row.Label = []float64{1, 1, 1}, "1"; broken && i%2 == 0 {
					row.Value, err = nil, &task.RowError{Line: row.Line, Reason: "test"}
				} else if broken {
					row.Value, row.Label = []float64{1}, "maybe"
				}
				if !yield(row, err) {
					return
				}
			}
		}, func(row task.Row) time.Duration {
			if len(row.Value) == 3 {
				calls++
			}
			return 0
		})
		return calls
	}
	if fits, not := work(false), work(true); fits < n || not != fits {
		t.Errorf("rows of the declared shape were mapped %d times for rows that fit, %d times for others", fits, not)
	}
}

// What rows hold shows neither in how many publishes there are, nor in their bytes, nor in when they leave, though
// dense rows take ten thousand times as long as rows that do not fit: of a file, and of a stream whose rows come one
// by one.
func TestTimesTellNothing(t *testing.T) {
	const n = 400
	of := func(kind func(i int) string, pause time.Duration) iter.Seq2[task.Row, error] {
		return func(yield func(task.Row, error) bool) {
			for i := range n {
				time.Sleep(pause)
				row := task.Row{Line: int64(i) + 1, Number: int64(i), Label: "1"}
				var err error
				switch kind(i) {
				case "dense":
					row.Value = []float64{1, 1, 1}
				case "sparse":
					row.Index, row.Value = []int32{1}, []float64{1}
				case "unlabelled":
					row.Value, row.Label = []float64{1, 1, 1}, ""
				default:
					row, err = task.Row{Line: row.Line, Number: row.Number}, &task.RowError{Line: row.Line, Reason: "test"}
				}
				if !yield(row, err) {
					return
				}
			}
		}
	}
	kinds := map[string]func(i int) string{
		"sparse":  func(int) string { return "sparse" },
		"invalid": func(int) string { return "invalid" },
		"mixed":   func(i int) string { return []string{"dense", "sparse", "invalid", "unlabelled"}[i*i%7%4] },
	}
	// No row comes on a tick itself: which of the two is first there is nobody's to say.
	for _, pause := range []time.Duration{0, 3100 * time.Microsecond, 37100 * time.Microsecond} {
		want := seenOf(t, n, false, of(func(int) string { return "dense" }, pause), costs)
		if len(want) != n {
			t.Fatalf("%d reports of %d rows", len(want), n)
		}
		for name, kind := range kinds {
			if got := seenOf(t, n, false, of(kind, pause), costs); !slices.Equal(got, want) {
				t.Errorf("a row each %v: %s rows look otherwise: %d and %d reports, %q and %q", pause, name, len(got), len(want),
					firstOther(got, want), firstOther(want, got))
			}
		}
	}
}

func firstOther(a, b []string) string {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return a[i]
		}
	}
	return ""
}

// The same of lines of a file, whatever is written in them behind the key.
func TestHostileLinesLookLikeOthers(t *testing.T) {
	honest := make([]string, 60)
	for i := range honest {
		honest[i] = fmt.Sprintf(`{"id":"p%d","x0":0.1,"x1":0.2,"x2":0.3,"y":1}`, i)
	}
	lines := func(all []string) iter.Seq2[task.Row, error] {
		spec, err := task.Parse([]byte(keyedDeclaration), nil)
		must(t, err)
		features, err := spec.Compile()
		must(t, err)
		rows, err := source.New(strings.NewReader(strings.Join(all, "\n")), features)
		must(t, err)
		return rows.All()
	}
	hostile := slices.Clone(honest)
	for i, rest := range []string{`}`, `,"x0":NaN}`, `,"x0":{"x":[[[]]]},"y":1}`, `,"x0":"` + strings.Repeat("x", 1<<17) +
		`"}`, `,"y":2,"y":1}`, ``, ` []`, `,"x0":null,"y":1}`} {
		for at := i; at < len(hostile); at += 9 {
			hostile[at] = fmt.Sprintf(`{"id":"p%d"%s`, at, rest)
		}
	}
	want, got := seenOf(t, 60, true, lines(honest), costs), seenOf(t, 60, true, lines(hostile), costs)
	if len(want) != 60 || !slices.Equal(got, want) {
		t.Errorf("%d and %d reports: %q and %q", len(got), len(want), firstOther(got, want), firstOther(want, got))
	}
}

// An event that is posted leaves on the second tick after it came, however long it takes to say what it is, while that
// is less than a tick.
func TestPostedEventsLeaveOnTicks(t *testing.T) {
	at := func(work, declared time.Duration) (seen []string) {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			w := newWorld(t, plan{rounds: 1, cohort: 20, deadline: time.Hour})
			hash := w.announce(ctx, 1)
			w.open(ctx, 1, 1, hash)
			c := w.config(participation.NewMemoryStore())
			watch := &watcher{Transport: c.Transport, begun: time.Now()}
			c.Transport = watch
			if declared > 0 {
				c.Work = func(*consent.Agreement) (func(), error) { return func() { time.Sleep(declared) }, nil }
			}
			dev := w.client(c)
			_, err := dev.Agreement(ctx)
			must(t, err)
			time.Sleep(time.Until(watch.begun.Add(known)))
			short, stop := context.WithTimeout(ctx, 10*time.Second)
			defer stop()
			var group sync.WaitGroup
			for i := range 20 {
				time.Sleep(7100 * time.Microsecond)
				group.Go(func() {
					_, _ = dev.PublishFunc(short, participation.EventKey(fmt.Sprint(i)), func() convex.Example {
						time.Sleep(work * time.Duration(i%4) / 4)
						return example(1)
					})
				})
			}
			group.Wait()
			must(t, dev.Close())
			seen = watch.seen
		})
		return seen
	}
	want := at(0, 0)
	if len(want) != 20 {
		t.Fatalf("%d reports", len(want))
	}
	if got := at(4*time.Millisecond, 0); !slices.Equal(got, want) {
		t.Errorf("%q and %q", firstOther(got, want), firstOther(want, got))
	}
	if got := at(400*time.Millisecond, 0); slices.Equal(got, want) {
		t.Error("work that overruns ticks does not show: this test sees nothing")
	}
	if got, want := at(40*time.Millisecond, 40*time.Millisecond), at(0, 40*time.Millisecond); len(want) != 20 ||
		!slices.Equal(got, want) {
		t.Errorf("ticks that are made for the work: %q and %q", firstOther(got, want), firstOther(want, got))
	}
}

// A tick has room for all rows that a report may be about, measured some at a time; what it is made for is bounded,
// whatever a plan says.
func TestWorkOfManyRows(t *testing.T) {
	if got := device.WorkOf(time.Millisecond, 16); got != 16*time.Millisecond {
		t.Errorf("16 times a millisecond are %v", got)
	}
	if got := device.WorkOf(time.Millisecond, 1<<60); got <= 0 || got > time.Hour {
		t.Errorf("very many rows take %v", got)
	}
}

// pausing returns work of a time, of which one run, counted from 0, pauses for long: the machine does other work, or
// sleeps.
func pausing(takes time.Duration, at int, pause time.Duration) func() {
	run := 0
	return func() {
		time.Sleep(takes)
		if run == at {
			time.Sleep(pause)
		}
		run++
	}
}

// A pause while work is measured is no work, in whichever run it comes.
func TestAPauseIsNoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, takes := range []time.Duration{100 * time.Nanosecond, 50 * time.Microsecond, 3 * time.Millisecond, time.Second} {
			for at := range 8 {
				if got := device.Measure(pausing(takes, at, 10*time.Second)); got != takes {
					t.Errorf("work of %v, with a pause in run %d: measured %v", takes, at, got)
				}
			}
		}
	})
}

// A device whose machine pauses while it measures what an event costs refuses no task, and has the ticks of one whose
// machine does not.
func TestAPauseMakesNoLongTicks(t *testing.T) {
	for at := range 8 {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			w := newWorld(t, plan{rounds: 1, cohort: 20, deadline: time.Minute})
			hash := w.announce(ctx, 1)
			w.open(ctx, 1, 1, hash)
			c := w.config(participation.NewMemoryStore())
			c.Work = func(*consent.Agreement) (func(), error) { return pausing(time.Microsecond, at, 10*time.Minute), nil }
			dev := w.client(c)
			var group sync.WaitGroup
			group.Go(func() { _, _ = dev.Publish(ctx, participation.EventKey("a"), example(1)) })
			time.Sleep(time.Hour)
			stop()
			group.Wait()
			must(t, dev.Close())
			if got := device.Within(dev); got != 20*time.Millisecond {
				t.Errorf("a pause in run %d: a report leaves within %v, want two ticks of 10 ms", at, got)
			}
		})
	}
}

// A task one of whose events takes longer than half of a round's deadline is refused by name, before anything of an
// event is done.
func TestTooSlowATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 1, cohort: 20, deadline: time.Minute})
		hash := w.announce(ctx, 1)
		w.open(ctx, 1, 1, hash)
		c := w.config(participation.NewMemoryStore())
		c.Work = func(*consent.Agreement) (func(), error) { return func() { time.Sleep(10 * time.Second) }, nil }
		dev := w.client(c)
		o, err := dev.Publish(ctx, participation.EventKey("a"), example(1))
		var refused *consent.RefusedError
		if !errors.As(err, &refused) || o.State != participation.Refused {
			t.Fatalf("%v, %v: want a refusal", o, err)
		}
		for _, word := range []string{"features", "3 coordinates", "20s", "30s"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%v: want %q in it", err, word)
			}
		}
	})
}
