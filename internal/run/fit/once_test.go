package fit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/curated"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner/research/curator"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/wire"
)

// onceOf plans the task's method for the rows of a table.
func onceOf(t *testing.T, spec *task.Spec, data string) *curated.Plan {
	t.Helper()
	features, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := run.LoadExamples(features, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	people := make([]curator.Person, len(rows))
	for i := range rows {
		people[i] = rows[i : i+1]
	}
	plan, err := curated.NewPlan(t.Context(), spec, people)
	if err != nil {
		t.Fatal(err)
	}
	return &plan
}

func kinds(entries []state.Entry) (out []string) {
	for _, e := range entries {
		out = append(out, e.Kind.String())
	}
	return out
}

// TestFitOnce: a method of one process is charged before its first noise, an interrupted fit has left nothing but the
// charge, and goes on; what it released is committed with what it cost, in one entry. What is on the disk meanwhile,
// and after, holds nothing of a row.
func TestFitOnce(t *testing.T) {
	const rows = 400
	for _, method := range []string{"output", "output-phases", "noisy-sgd"} {
		t.Run(method, func(t *testing.T) {
			spec := declared(t, strings.Replace(ward, "logistic", "logistic, radius: 5", 1), rows, "schedule.algorithm="+method)
			c, view := fitted(t, spec, table(t, rows, nobody), rows)
			once, calls := onceOf(t, spec, c.Data.Path), 0
			of := once.Fit
			c.Once = once
			ctx, cancel := context.WithCancel(t.Context())
			once.Fit = func(ctx context.Context) (statedir.Release, error) {
				calls++
				looksFor(t, c.StateDir)
				// over the socket: the folder is held
				doc, err := statedir.Ask(ctx, statedir.Where{StateDir: c.StateDir}, statedir.AskLedger)
				if err != nil || !strings.Contains(string(doc), `"kind":"reserved"`) ||
					strings.Contains(string(doc), `"kind":"spent"`) {
					t.Errorf("before the first noise the ledger says %v, %s", err, doc)
				}
				r, err := of(ctx) // released to nobody
				if calls == 1 {
					cancel()
					return r, context.Canceled
				}
				return r, err
			}
			if err := Run(ctx, c); !errors.Is(err, context.Canceled) || calls != 1 {
				t.Fatalf("interrupted: %v", err)
			}
			looksFor(t, c.StateDir)
			entries, before := ledger(t, c.StateDir)
			if got := kinds(entries); !slices.Equal(got, []string{"reserved"}) || before.Checkpoint.Ended() ||
				before.Release.Phase != 0 || !slices.Equal(before.Model(), once.Start.Model) {
				t.Errorf("after an interruption the ledger has %v, the release is %+v", got, before.Release)
			}
			other := c
			other.Spec = declared(t, ward, rows)
			other.Once = nil
			if err := Run(t.Context(), other); err == nil || !strings.Contains(err.Error(), "a task never changes") {
				t.Errorf("another method in the folder: %v", err)
			}
			other = c
			other.Once = &curated.Plan{Wire: otherwise(t, spec, c.Data.Path), Start: once.Start, Fit: once.Fit}
			if err := Run(t.Context(), other); err == nil || !strings.Contains(err.Error(), "another version of the program") {
				t.Errorf("another plan in the folder: %v", err)
			}
			if err := Run(t.Context(), c); err != nil || calls != 2 {
				t.Fatalf("%d calls, went on: %v", calls, err)
			}
			entries, kept := ledger(t, c.StateDir)
			e := entries[len(entries)-1]
			if got := kinds(entries); !slices.Equal(got, []string{"spent"}) || e.Epsilon != once.Wire.Epsilon ||
				!(e.Epsilon > 1.9 && e.Epsilon <= 2) || e.Delta != 1e-5 {
				t.Errorf("the ledger has %v, epsilon %v, delta %v", got, e.Epsilon, e.Delta)
			}
			if kept.Release.Phase == 0 || slices.Equal(kept.Model(), once.Start.Model) ||
				!slices.Equal(kept.Model(), view.Model()) {
				t.Errorf("released %+v", kept.Release)
			}
			if s, err := view.Snapshot(); err != nil || s.Privacy.Unit != "one row, replaced by any other" ||
				s.Privacy.Units != rows || s.Privacy.Epsilon != e.Epsilon || s.ModelVersion != 1 {
				t.Errorf("the model says %+v: %v", s.Privacy, err)
			}
			var spent *SpentError
			if err := Run(t.Context(), c); !errors.As(err, &spent) || calls != 2 {
				t.Errorf("a second fit: %v", err)
			}
			looksFor(t, c.StateDir)
		})
	}
}

// otherwise returns the plan of another epsilon.
func otherwise(t *testing.T, spec *task.Spec, data string) *wire.Plan {
	t.Helper()
	out := onceOf(t, spec, data).Wire
	out.Epsilon /= 2
	return out
}

// TestFitLost: a process that died while it wrote its release may have left parts of it, so that the fit is over, and
// stays charged.
func TestFitLost(t *testing.T) {
	const rows = 100
	spec := declared(t, strings.Replace(ward, "logistic", "logistic, radius: 5", 1), rows, "schedule.algorithm=output")
	c, _ := fitted(t, spec, table(t, rows, nobody), rows)
	c.Once = onceOf(t, spec, c.Data.Path)
	fit := c.Once.Fit
	c.Once.Fit = func(context.Context) (statedir.Release, error) { return statedir.Release{}, context.Canceled }
	if err := Run(t.Context(), c); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	p, found, err := readPin(c.StateDir)
	if p.Writing = true; err != nil || !found || p.write(c.StateDir) != nil {
		t.Fatalf("no pin: %v", err)
	}
	c.Once.Fit = fit
	for range 2 {
		var lost *LostError
		if err := Run(t.Context(), c); !errors.As(err, &lost) || lost.Epsilon != c.Once.Wire.Epsilon {
			t.Errorf("a second release: %v", err)
		}
	}
	entries, view := ledger(t, c.StateDir)
	if got := fmt.Sprint(kinds(entries)); got != "[void]" ||
		view.Checkpoint.Ledger.Spent().Epsilon != c.Once.Wire.Epsilon || view.Release.Phase != 0 {
		t.Errorf("the ledger has %s, the release is %+v", got, view.Release)
	}
	if _, err := os.Stat(filepath.Join(c.StateDir, pinFile)); err != nil {
		t.Error(err)
	}
}

// A dying store fails at its second commit, as a disk does that has taken a part of the write.
type dying struct {
	state.Store
	commits int
}

func (d *dying) Commit(ctx context.Context, at state.Checkpoint, entries []state.Entry, kept ...state.Kept) error {
	if d.commits++; d.commits == 2 {
		return errors.New("the disk died")
	}
	return d.Store.Commit(ctx, at, entries, kept...)
}

// TestWritingIsMarkedFirst checks that a release of which parts may be on the disk, because its write failed, is not
// computed again: the folder is marked before the first byte is written.
func TestWritingIsMarkedFirst(t *testing.T) {
	const rows = 100
	spec := declared(t, strings.Replace(ward, "logistic", "logistic, radius: 5", 1), rows, "schedule.algorithm=output")
	c, _ := fitted(t, spec, table(t, rows, nobody), rows)
	c.Once = onceOf(t, spec, c.Data.Path)
	fit, calls := c.Once.Fit, 0
	c.Once.Fit = func(ctx context.Context) (statedir.Release, error) {
		calls++
		return fit(ctx)
	}
	store := &dying{Store: storetest.NewMemory()}
	if err := c.run(t.Context(), store, nil, nil); err == nil || !strings.Contains(err.Error(), "the disk died") {
		t.Fatalf("a write that fails: %v", err)
	}
	for range 2 {
		var lost *LostError
		if err := c.run(t.Context(), store, nil, nil); !errors.As(err, &lost) || calls != 1 {
			t.Errorf("%d releases were computed: %v", calls, err)
		}
	}
}
