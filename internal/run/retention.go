package run

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/retention"
)

// KeepRemoving removes the records of a task's old rounds now and every [retention.Every], with an administrator's
// credentials, until ctx ends or what it returns is called. What fails is logged, and tried again the next time.
func KeepRemoving(ctx context.Context, conn *natsjs.Conn, name stream.Task, age time.Duration,
	log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { unbroken(ctx, log, func() { keepRemoving(ctx, conn, name, age, log) }) })
	return func() {
		cancel()
		running.Wait()
	}
}

func keepRemoving(ctx context.Context, conn *natsjs.Conn, name stream.Task, age time.Duration, log *slog.Logger) {
	tick := time.NewTicker(retention.Every)
	defer tick.Stop()
	for {
		out, err := natsadmin.Retain(ctx, conn, name, age)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.Warn("cannot remove the records of old rounds; the streams grow until that works", "task", name, "error", err)
		case out.Records > 0:
			log.Info("removed the records of old rounds", "task", name, "before_round", out.Before, "records", out.Records,
				"older_than", age)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
