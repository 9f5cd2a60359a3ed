package natsadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// Provision creates the streams and the consumer of a task where they are missing. What is there already is left as it
// is; where a guarantee would not hold on it, that is an error that names the settings. It may be called again, and
// tries until ctx ends where a cluster has no leader or too few of its servers. A stream that holds what decides
// rounds and is missing under a task that has begun is errLost, and is not made again. Where it fails, it removes what
// it made, and nothing else.
func Provision(ctx context.Context, c *natsjs.Conn, task stream.Task, o Options) error {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return fmt.Errorf("provision: %w", err)
	}
	if err := o.validate(); err != nil {
		return fmt.Errorf("provision %s: %w", task, err)
	}
	deaf := 0
	wait := func(err error) bool {
		if errors.Is(err, nats.ErrNoResponders) {
			deaf++
		}
		return natsjs.Transient(err) && deaf < maxDeaf
	}
	mark := newMark()
	if err := c.Admin().Retry(ctx, "provision "+string(task), wait, func() error {
		return provisionOnce(ctx, c, task, o,
			mark)
	}); err != nil {
		return rollback(ctx, c, task, mark, err)
	}
	return nil
}

// maxDeaf bounds the number of times, some 15 seconds in all, that provisioning may find no listener for its requests:
// a server that starts takes connections before JetStream listens, but an account without JetStream's API stays as it
// is.
const maxDeaf = 12

func provisionOnce(ctx context.Context, c *natsjs.Conn, task stream.Task, o Options, mark string) error {
	begun, err := lostOf(ctx, c, task)
	if err != nil {
		return err
	}
	for _, s := range o.streams() {
		want := streamConfig(task, s, o)
		want.Metadata = map[string]string{madeBy: mark}
		if begun && s == stream.Reports {
			want.FirstSeq = uint64(time.Now().UnixMicro())
		}
		have, err := streamInfo(ctx, c, want.Name)
		if err == nil && have.Config.Replicas < o.Replicas {
			return fmt.Errorf("provision: stream %s has %s, want %d: raise them with the nats command, or ask for fewer",
				want.Name, Copies(have.Config.Replicas), o.Replicas)
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = c.Admin().Call(ctx, apiStreamCreate+want.Name, func(ctx context.Context) error {
				_, err := c.Admin().JetStream().CreateStream(ctx, want)
				return err
			})
			if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
				err = nil // somebody else was faster; what they made is checked below
			}
		}
		if s == stream.Reports && slices.Contains(fullCodes, jetstream.ErrorCode(natsjs.Code(err))) {
			return fmt.Errorf("provision %s: %w: it needs %d bytes; --report-bytes sets fewer aside", want.Name, err,
				want.MaxBytes)
		}
		if err != nil {
			return fmt.Errorf("provision %s: %w", want.Name, err)
		}
	}
	reports := task.Name(stream.Reports)
	create := apiConsumerCreate + reports + "." + natsjs.Durable + "." + task.Reports()
	err = c.Admin().Call(ctx, create, func(ctx context.Context) error {
		_, err := c.Admin().JetStream().CreateConsumer(ctx, reports, consumerConfig(task, o))
		return err
	})
	if err != nil && !errors.Is(err, jetstream.ErrConsumerExists) {
		return fmt.Errorf("provision consumer of %s: %w", reports, err)
	}
	if err := CheckStreams(ctx, c, task); err != nil {
		return fmt.Errorf("provision: %w", err)
	}
	return nil
}

// A StreamState is a task's stream as it is.
type StreamState struct {
	Name     string   `json:"name"`
	Subjects []string `json:"subjects"`
	Created  bool     `json:"created"` // by this call
	Replicas int      `json:"replicas"`
	Storage  string   `json:"storage"`
	Messages uint64   `json:"messages"`
	// how many messages of one attempt may wait, of the stream of reports; 0: no limit
	PerAttempt int64 `json:"per_attempt,omitempty"`
}

// ProvisionAll does what Provision does, and returns the streams that exist afterwards, and which of them are new.
func ProvisionAll(ctx context.Context, c *natsjs.Conn, task stream.Task, o Options) ([]StreamState, error) {
	before := map[stream.Stream]bool{}
	for _, s := range o.streams() {
		_, err := streamInfo(ctx, c, task.Name(s))
		if before[s] = err == nil; err != nil && !natsjs.Transient(err) {
			return nil, fmt.Errorf("provision %s: %w", task.Name(s), err)
		}
	}
	if err := Provision(ctx, c, task, o); err != nil {
		return nil, err
	}
	var list []StreamState
	for _, s := range o.streams() {
		info, err := streamInfo(ctx, c, task.Name(s))
		if err != nil {
			return nil, fmt.Errorf("provision %s: %w", task.Name(s), err)
		}
		state := StreamState{Name: info.Config.Name, Subjects: info.Config.Subjects, Created: !before[s],
			Replicas: info.Config.Replicas, Storage: strings.ToLower(info.Config.Storage.String()), Messages: info.State.Msgs}
		if s == stream.Reports {
			state.PerAttempt = max(info.Config.MaxMsgsPerSubject, 0)
		}
		list = append(list, state)
	}
	return list, nil
}

// Remove deletes the streams of a task, with all that is in them, and returns the names of those that were there. It
// may be called again, and tries until ctx ends where a cluster has no leader. Whether the task has ended is the
// caller's to see.
func Remove(ctx context.Context, c *natsjs.Conn, task stream.Task) (removed []string, err error) {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return nil, fmt.Errorf("remove: %w", err)
	}
	// The stream of rounds goes last: while it exists, one can still see whether the task has ended.
	for _, s := range slices.Backward(possible()) {
		name := task.Name(s)
		wait := func(err error) bool { return natsjs.Leaderless(err) && !errors.Is(err, nats.ErrNoResponders) }
		err := c.Admin().Retry(ctx, "remove "+name, wait, func() error { return deleteStream(ctx, c, name) })
		switch {
		case err == nil:
			removed = append(removed, name)
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return removed, fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return removed, nil
}
