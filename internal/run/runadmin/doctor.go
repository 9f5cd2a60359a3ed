package runadmin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/wire"
)

// Doctor examines a learner's state folder, a broker and a task's streams, as far as they are named, and leaves
// nothing behind. A missing connection, or a missing state, is a finding too; it returns an error only for a wrong
// configuration, or if ctx is done.
func Doctor(ctx context.Context, c Config) ([]natsadmin.Finding, error) {
	sizes, err := c.sizes()
	if err != nil {
		return nil, err
	}
	v := &visit{Config: c, free: pebblestore.Free}
	if c.StateDir != "" {
		v.folder(ctx)
	}
	if c.Broker.URL == "" {
		return v.list, ctx.Err()
	}
	conn, err := c.connect(ctx)
	var wrong *natsjs.ConfigError
	switch {
	case ctx.Err() != nil || errors.As(err, &wrong):
		return nil, err
	case err != nil:
		v.find("connection", natsadmin.Failure, "%v", err)
		return v.list, nil
	}
	defer conn.Close()
	v.find("connection", natsadmin.OK, "connected")
	if c.Spec != nil {
		if err := sizes.Fit(conn.Limits()); err != nil {
			v.find("sizes", natsadmin.Failure, "%v", err)
		} else {
			v.find("sizes", natsadmin.OK, "every message of the task fits through this broker")
		}
	}
	if v.Task == "" && v.state != nil {
		v.Task = stream.Task(v.state.Task.Name)
	}
	more, err := natsadmin.Examine(ctx, conn, v.Task, natsadmin.Expect{Replicas: c.Replicas, Role: c.Role, Now: time.Now(),
		Options: c.options(sizes), Routes: c.Routes})
	v.list = append(v.list, more...)
	if err == nil && v.Task != "" {
		announced := v.standing(ctx, conn)
		v.tokens(ctx, conn, announced)
		v.stageClock(ctx, conn)
		v.helper(ctx, conn, time.Now())
		v.relay(ctx, conn)
		err = ctx.Err()
	}
	return v.list, err
}

// A visit collects findings.
type visit struct {
	Config
	list    []natsadmin.Finding
	state   *statedir.View // what the folder holds; nil: nothing, or nothing that can be read
	running bool           // a learner holds the folder
	free    func(folder string) (bytes uint64, err error)
}

func (v *visit) find(check string, status natsadmin.Status, format string, args ...any) {
	v.list = append(v.list, natsadmin.Finding{Check: check, Status: status, Text: fmt.Sprintf(format, args...)})
}

// standing compares the task on the broker with the file and the folder, and returns it; nil: it cannot be read.
func (v *visit) standing(ctx context.Context, conn *natsjs.Conn) *wire.Task {
	m, err := conn.Get(ctx, v.Task.Task())
	signed, body := &wire.Signed{}, &wire.Task{}
	if err == nil {
		if err = stream.Unmarshal(m.Data, signed); err == nil {
			err = stream.Unmarshal(signed.Body, body)
		}
	}
	switch {
	case errors.Is(err, stream.ErrNotFound) && v.state != nil:
		v.find("task", natsadmin.Failure,
			"the state folder holds task %q and the broker has none of this name: it is another broker, or its streams are lost: "+
				"restore them (docs/how-to/runbook.md)", v.Task)
		return nil
	case errors.Is(err, stream.ErrNotFound):
		v.find("task", natsadmin.OK, "it has not begun: learner run begins it")
		return nil
	case errors.Is(err, natsjs.ErrNoStream): // found above
		return nil
	case errors.Is(err, natsjs.ErrDenied):
		v.find("task", natsadmin.Warning, "these credentials may not read it")
		return nil
	case err != nil:
		v.find("task", natsadmin.Failure, "%v", err)
		return nil
	}
	if v.Spec != nil {
		v.drift("the task on the broker", body.Declaration)
	}
	switch hash := stream.HashOf(signed.Body); {
	case v.StateDir == "":
	case v.state == nil:
		v.find("task", natsadmin.Failure,
			"it stands on the broker, and the state folder holds nothing of it: name the folder of its learner, or put a backup back with "+
				"learner restore")
	case stream.Hash(v.state.Checkpoint.Cursor.TaskHash) != hash:
		v.find("task", natsadmin.Failure,
			"the broker holds another task by the name %q (%s): each learner wants a name and a state folder of its own",
			v.Task, or(task.DifferenceText(task.Differences(v.state.Task.Declaration, body.Declaration)),
				"declared alike, begun by another learner"))
	default:
		v.find("task", natsadmin.OK, "broker and state folder hold the same task")
		v.cursor(ctx, conn)
	}
	return body
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// drift compares the task file with a declaration.
func (v *visit) drift(of string, declaration []byte) {
	own, err := v.Spec.Canonical()
	switch {
	case err != nil:
		v.find("drift", natsadmin.Failure, "%v", err)
	case !bytes.Equal(own, declaration):
		v.find("drift", natsadmin.Failure,
			"the task file is not %s: %s: a task never changes: put the file back, or give the changed one a new name and another --state",
			of, task.DifferenceText(task.Differences(own, declaration)))
	default:
		v.find("drift", natsadmin.OK, "the task file declares %s", of)
	}
}
