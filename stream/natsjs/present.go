package natsjs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// Present says whether the task's streams answer, by the calls that the roles have: reads by subject and, for the reports,
// a look at the consumer or else a publish that the stream cannot store. Streams that these credentials may not touch count
// as present: they are another role's. A missing one is ErrNoStream.
func Present(ctx context.Context, c *Conn, task stream.Task) error {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return fmt.Errorf("streams of %q: %w", task, err)
	}
	touched := false
	for _, subject := range []string{task.Task(), task.Stage(), task.Lease(), task.Batch(1)} {
		_, err := c.Get(ctx, subject)
		switch {
		case err == nil || errors.Is(err, stream.ErrNotFound):
			touched = true
		case !errors.Is(err, ErrDenied):
			return fmt.Errorf("streams of %s: %w", task, err)
		}
	}
	err := c.consumerThere(ctx, task)
	if errors.Is(err, ErrDenied) {
		err = c.probe(ctx, task.Report(1, 1))
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrDenied) && touched:
		return nil
	}
	return fmt.Errorf("reports of %s: %w", task, err)
}

func (c *Conn) consumerThere(ctx context.Context, task stream.Task) error {
	_, err := c.consumerInfo(ctx, task.Name(stream.Reports), Durable)
	return err
}

// WaitStreams waits until the task's streams are there, asking about once in every interval. Where the credentials may see
// the streams' settings, they are checked, and streams with other settings end the wait at once; where they may not, that
// the streams answer has to do: `learner doctor` checks the rest. A broker without a leader does not end the wait.
func WaitStreams(ctx context.Context, c *Conn, task stream.Task, interval time.Duration) error {
	for {
		err := CheckStreams(ctx, c, task)
		if errors.Is(err, ErrDenied) {
			err = Present(ctx, c, task)
		}
		if err == nil || !transient(err) {
			return err
		}
		sleep(ctx, interval)
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// A StreamState is a task's stream as it is.
type StreamState struct {
	Name     string   `json:"name"`
	Subjects []string `json:"subjects"`
	Created  bool     `json:"created"` // by this call
	Replicas int      `json:"replicas"`
	Storage  string   `json:"storage"`
	Messages uint64   `json:"messages"`
}

// ProvisionAll is Provision that answers what there is afterwards, and what of it is new.
func ProvisionAll(ctx context.Context, c *Conn, task stream.Task, o Options) ([]StreamState, error) {
	before := map[stream.Stream]bool{}
	for _, s := range all() {
		_, err := c.streamInfo(ctx, task.Name(s))
		if before[s] = err == nil; err != nil && !transient(err) {
			return nil, fmt.Errorf("provision %s: %w", task.Name(s), err)
		}
	}
	if err := Provision(ctx, c, task, o); err != nil {
		return nil, err
	}
	var list []StreamState
	for _, s := range all() {
		info, err := c.streamInfo(ctx, task.Name(s))
		if err != nil {
			return nil, fmt.Errorf("provision %s: %w", task.Name(s), err)
		}
		list = append(list, StreamState{Name: info.Config.Name, Subjects: info.Config.Subjects, Created: !before[s],
			Replicas: info.Config.Replicas, Storage: strings.ToLower(info.Config.Storage.String()), Messages: info.State.Msgs})
	}
	return list, nil
}
