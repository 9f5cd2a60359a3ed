package run

import (
	"context"
	"errors"

	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/admin"
	"github.com/panlearn/panlearn/stream/wire"
)

// Provision creates the streams of a task, sized for its reports, or finds them where our credentials may not create any;
// it refuses a task whose messages the broker would not take. With memoryReports the broker keeps sealed reports in its
// memory: no write to disk for each, but reports that nobody opened yet go with the broker's process, and their users with
// them, because they count themselves as having taken part.
func Provision(ctx context.Context, conn *natsjs.Conn, name stream.Task, body *wire.Task, replicas int, memoryReports bool) error {
	sizes, err := manifest.SizesOf(body, stage.ReasonNames())
	if err != nil {
		return err
	}
	if err := sizes.Fit(conn.Limits()); err != nil {
		return err
	}
	err = admin.Provision(ctx, conn, name, admin.Options{Replicas: replicas, MaxMsgSize: sizes.Report, MemoryReports: memoryReports})
	if errors.Is(err, natsjs.ErrDenied) { // as it should be: an administrator has created them
		return admin.Present(ctx, conn, name)
	}
	return err
}
