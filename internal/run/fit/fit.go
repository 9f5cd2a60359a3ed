// Package fit learns from the rows of a file in one place, for `learner fit`: a task of one silo, with all roles in
// this process (package pipeline). Each report has the noise that hides a single row, so everything on the disk is
// releasable: batches, models, the ledger, and reports with their noise. Rows, exact sums and values computed from them
// without noise are only in memory.
//
// A state folder belongs to one fit. It is pinned to the task and to numbers that are public (how many rows, or people,
// of which file); a fit that was killed goes on, and one that has ended is not run again, for it would be charged on
// top.
package fit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/run/curated"
	"github.com/panlearn/panlearn/internal/run/pipeline"
	"github.com/panlearn/panlearn/internal/run/runlearner"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/seal"
)

// lease is the stage's: nobody else works on the folder, so a new process need not wait long for one that was killed.
const lease = 4 * time.Second

// Config is a fit.
type Config struct {
	Spec         *task.Spec // of one place, see task.LoadTogether, of as many units as the data have
	Data         Data
	StateDir     string
	MaxBlockRows uint64        // see device.Settings
	Once         *curated.Plan // of a method of one process, which has the rows; nil: the pipeline

	Watch  service.Observer
	Fill   func(users, cohort uint64)
	HTTP   net.Listener // of the page; nil: none. Run closes it
	Logger *slog.Logger
	// Begun is called before anything is learned, and reports whether the folder has a fit that is resumed.
	Begun func(resumed bool)
	// Done is called with the committed state when the task has ended; serving reports whether the page stays up
	// after it, until ctx is done. Once it succeeds the fit is over.
	Done func(v statedir.View, serving bool) error
}

// A TaskError refuses a task that cannot be planned, or is not the folder's.
type TaskError struct{ Err error }

func (e *TaskError) Error() string { return e.Err.Error() }

func (e *TaskError) Unwrap() error { return e.Err }

// Run learns until the task has ended. The same Config goes on where a process was killed. The error is a *SpentError
// if the folder's fit is over, and a *FolderError if the folder belongs to something else.
func Run(ctx context.Context, c Config) error {
	if c.HTTP != nil {
		defer c.HTTP.Close() // where nothing serves it yet
	}
	return runlearner.Hold(ctx, c.StateDir, c.Logger,
		func(ctx, _ context.Context, _ *errgroup.Group, store state.Store, finish *service.Finisher,
			history *service.History) error {
			return c.run(ctx, store, finish, history)
		})
}

func (c Config) run(ctx context.Context, store state.Store, finish *service.Finisher, history *service.History) error {
	pinned, view, err := c.take(ctx, store)
	if err != nil {
		return err
	}
	done := func(v statedir.View, serving bool) error {
		if err := c.Done(v, serving); err != nil {
			return err
		}
		pinned.Told = true
		return pinned.write(c.StateDir)
	}
	if view != nil && view.Checkpoint.Ended() {
		if view.Release != nil && view.Checkpoint.Ledger.Steps == 0 {
			return lost(view.Checkpoint)
		}
		return done(*view, false)
	}
	if c.Once != nil {
		if err := c.once(ctx, store, &pinned, view); err != nil {
			return err
		}
		now, err := statedir.Look(ctx, store)
		if err != nil {
			return err
		}
		return done(now, false)
	}
	all := pipeline.Config{Spec: c.Spec, Dir: c.StateDir, Store: store, Shown: store, Curves: c.StateDir,
		Lease: lease, Finish: finish, History: history, Watch: c.Watch, Fill: c.Fill, HTTP: c.HTTP, Logger: c.Logger,
		Client: device.Settings{Source: c.Data.Path, Rows: true, MaxBlockRows: c.MaxBlockRows}, Offer: c.offer}
	if all.Body, all.Expected, err = runlearner.TaskOf(ctx, store, c.Spec); err != nil {
		return &TaskError{err}
	}
	if all.Learner, _, err = seal.LoadOrCreateIdentity(filepath.Join(c.StateDir, "learner.key")); err != nil {
		return err
	}
	if all.Stage, _, err = seal.LoadOrCreateIdentity(filepath.Join(c.StateDir, "stage.key")); err != nil {
		return err
	}
	all.Done = func(device.Summary, time.Duration) error {
		view, err := statedir.Look(ctx, store)
		if err != nil {
			return err
		}
		return done(view, c.HTTP != nil)
	}
	c.Begun(view != nil)
	return pipeline.Run(ctx, all)
}

// parts are the folders without which a fit cannot go on. They are there before anything is committed, so that one
// that is missing was removed.
var parts = []string{"nats", "devices", "marks"}

// take pins a new folder, or holds one that is there against the fit; view is nil where nothing is committed.
func (c Config) take(ctx context.Context, store state.Store) (pinned pin, view *statedir.View, err error) {
	v, err := statedir.Look(ctx, store)
	switch {
	case err == nil:
		view = &v
	case !errors.Is(err, state.ErrEmpty):
		return pin{}, nil, err
	}
	pinned, found, err := readPin(c.StateDir)
	if err != nil {
		return pin{}, nil, err
	}
	switch {
	case !found && view != nil:
		return pin{}, nil, &FolderError{"this folder is of learner run, which has no rows here: take an empty one"}
	case !found:
		for _, part := range parts {
			if c.Once != nil {
				break // it keeps nothing there
			}
			if err := os.MkdirAll(filepath.Join(c.StateDir, part), 0o700); err != nil {
				return pin{}, nil, err
			}
		}
		pinned = pin{Version: pinVersion, Data: c.Data.public()}
		return pinned, nil, pinned.write(c.StateDir)
	}
	if pinned.Told && view != nil {
		spent := view.Checkpoint.Ledger.Spent()
		return pin{}, nil, &SpentError{spent.Epsilon, spent.Delta}
	}
	if err := pinned.differs(c.Data); err != nil {
		return pin{}, nil, err
	}
	if view == nil || view.Release != nil {
		return pinned, view, nil
	}
	for _, part := range parts {
		if _, err := os.Stat(filepath.Join(c.StateDir, part)); errors.Is(err, fs.ErrNotExist) && !view.Checkpoint.Ended() {
			return pin{}, nil, &FolderError{
				fmt.Sprintf(
					"its folder %s is gone, and with it which reports there are of these rows: they would be drawn again, with other noise. "+
						"learner snapshot has the model so far", part)}
		}
	}
	return pinned, view, nil
}

// offer lets the client report about the rows.
func (c Config) offer(ctx context.Context, devices *device.Device) (device.Summary, error) {
	rows, err := Open(c.Data, c.Spec)
	if err != nil {
		return device.Summary{}, err
	}
	defer rows.Close()
	return devices.Run(ctx, rows.All())
}

// Rows yields the rows to learn from.
type Rows struct {
	*source.Reader
	data Data
	held block.Holdout
}

// Open opens the data of a task.
func Open(d Data, spec *task.Spec) (*Rows, error) {
	var err error
	if d.Format != "" {
		if spec, err = spec.ReadAs(task.Format(d.Format)); err != nil {
			return nil, fmt.Errorf("--format: %w", err)
		}
	}
	features, err := spec.Compile()
	if err != nil {
		return nil, err
	}
	r, err := source.OpenFitting(d.Path, features)
	return &Rows{Reader: r, data: d, held: block.Holdout{Every: d.Holdout, Task: spec.Name, People: spec.Privacy.ByUser()}}, err
}

// All yields the rows under places of their own, in order, as if they were one file: which are held out leaves no gap.
// It fails where there are not as many as there were.
func (r *Rows) All() iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		read, kept := 0, 0
		for row, err := range r.Reader.All() {
			var unfit *task.RowError
			if err != nil && !errors.As(err, &unfit) {
				yield(row, err)
				return
			}
			if read++; r.held.Has(read-1, row.User) {
				continue
			}
			row.File, row.Number = "", int64(kept)
			if kept++; !yield(row, err) {
				return
			}
		}
		if kept != r.data.Rows {
			yield(task.Row{}, fmt.Errorf("the data have changed: %d rows to learn from, there were %d", kept, r.data.Rows))
		}
	}
}
