package run

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/panics"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/wire"
)

// mendEvery is the period at which the streams of a task are checked, beside each reconnection.
const mendEvery = 10 * time.Second

// Streams holds how a task's streams are provisioned, for KeepProvisioned.
type Streams struct {
	Body          *wire.Task
	Replicas      int
	MemoryReports bool
	ReportBytes   int64         // that wait at the broker at most; 0: what the plan's reports take
	Administers   bool          // our credentials may make streams
	Every         time.Duration // 0: mendEvery
}

// KeepProvisioned checks, after each reconnection and now and then, whether a task's streams and their consumer
// exist, until ctx ends or stop is called. It makes again what the task can do without, if our credentials may; it
// logs a warning about what was lost with it, and about what somebody has to do.
func KeepProvisioned(ctx context.Context, conn *natsjs.Conn, name stream.Task, s Streams,
	log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { unbroken(ctx, log, func() { s.keep(ctx, conn, name, log) }) })
	return func() {
		cancel()
		running.Wait()
	}
}

func (s Streams) keep(ctx context.Context, conn *natsjs.Conn, name stream.Task, log *slog.Logger) {
	sizes, err := manifest.SizesOf(s.Body, stage.ReasonNames())
	if err != nil {
		return // provisioning has refused it
	}
	every := s.Every
	if every == 0 {
		every = mendEvery
	}
	wakes, err := conn.Watch(ctx, name) // the zero wake is a reconnection
	if err != nil {
		log.Debug("no wake-ups: streams are looked after on a timer alone", "error", err)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var trouble stream.Trouble
	for {
		select {
		case <-ctx.Done():
			return
		case w, ok := <-wakes:
			if !ok {
				wakes = nil
			}
			if w.Subject != "" || !ok {
				continue
			}
		case <-tick.C:
		}
		var made []string
		if s.Administers {
			made, err = natsadmin.Mend(ctx, conn, name, s.options(sizes))
		} else {
			err = natsadmin.Present(ctx, conn, name)
		}
		switch {
		case ctx.Err() != nil:
			return
		case len(made) > 0:
			log.Warn(
				"the broker lost streams of the task, which are made again: reports that nobody had opened are gone, and their users count themselves "+
					"as having taken part", "task", name, "made", made)
			trouble.Over()
		case err == nil:
			trouble.Over()
		case errors.Is(err, natsjs.ErrNoStream) && !s.Administers:
			if trouble.Tell(time.Now(), err) {
				log.Warn(
					"a stream of the task is gone, and these credentials may not make it again: an administrator's learner provision makes reports and leases again; "+
						"what decides rounds has to be put back (docs/how-to/runbook.md, the broker lost records)", "task", name, "error",
					err)
			}
		default:
			log.Log(ctx, trouble.Level(time.Now(), err), "cannot look after the task's streams", "task", name, "error", err)
		}
	}
}

// afterPanic is the time after which what looks after a task is begun again where it panicked.
const afterPanic = time.Minute

// unbroken calls f, and again where it panicked, until ctx is done: of many tasks in a process no other one ends.
func unbroken(ctx context.Context, log *slog.Logger, f func()) {
	for {
		err := panics.Caught(func() error {
			f()
			return nil
		})
		if err == nil {
			return
		}
		log.Error("what looks after a task's streams panicked: it begins again", "error", err, "after", afterPanic)
		if !sleep(ctx, afterPanic) {
			return
		}
	}
}
