package natsadmin

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// CheckStreams compares the streams and the consumer of a task with what its guarantees need. Settings that an
// operator may choose (replicas, limits of reports, storage of reports) are not compared. A missing stream is
// natsjs.ErrNoStream.
func CheckStreams(ctx context.Context, c *natsjs.Conn, task stream.Task) error {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return fmt.Errorf("check streams: %w", err)
	}
	var o Options
	if err := o.validate(); err != nil {
		return err
	}
	var differ []error
	for _, s := range possible() {
		want := streamConfig(task, s, o)
		have, err := streamInfo(ctx, c, want.Name)
		if slices.Contains(optional, s) && errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("stream %s: %w", want.Name, err)
		}
		if d := compare(critical(s, want), critical(s, have.Config)); len(d) > 0 {
			differ = append(differ, fmt.Errorf("stream %s: %s: change them with the nats command, or delete the stream",
				want.Name, strings.Join(d, "; ")))
		}
	}
	have, err := consumerInfo(ctx, c, task.Name(stream.Reports))
	if err != nil {
		return fmt.Errorf("consumer %s of %s: %w", natsjs.Durable, task.Name(stream.Reports), err)
	}
	if d := compare(criticalConsumer(consumerConfig(task, o)), criticalConsumer(have.Config)); len(d) > 0 {
		differ = append(differ, fmt.Errorf("consumer %s of %s: %s: delete it and provision again",
			natsjs.Durable, task.Name(stream.Reports), strings.Join(d, "; ")))
	}
	return errors.Join(differ...)
}

// setting is one setting that a guarantee rests on.
type setting struct {
	name  string
	value any
}

func critical(s stream.Stream, c jetstream.StreamConfig) []setting {
	subjects := slices.Sorted(slices.Values(c.Subjects))
	list := []setting{
		{"subjects", strings.Join(subjects, " ")}, {"retention", c.Retention}, {"discard", c.Discard},
		{"discard_new_per_subject", c.DiscardNewPerSubject},
		{"allow_rollup_hdrs", c.AllowRollup}, {"allow_msg_ttl", c.AllowMsgTTL}, {"allow_msg_counter", c.AllowMsgCounter},
		{"allow_msg_schedules", c.AllowMsgSchedules}, {"allow_atomic", c.AllowAtomicPublish},
		{"allow_batched", c.AllowBatchPublish},
		{"no_ack", c.NoAck}, {"sealed", c.Sealed},
		{"mirror", c.Mirror != nil}, {"sources", len(c.Sources)}, {"subject_transform", c.SubjectTransform != nil},
		{"max_msgs", c.MaxMsgs}, {"persist_mode", c.PersistMode},
	}
	if s == stream.Reports {
		return append(list, setting{"a limit of max_msgs_per_subject", c.MaxMsgsPerSubject > 0})
	}
	list = append(list, setting{"max_msgs_per_subject", c.MaxMsgsPerSubject}, setting{"allow_direct", c.AllowDirect},
		setting{"storage", c.Storage}, setting{"max_age", c.MaxAge},
		setting{"max_bytes", c.MaxBytes})
	if s == stream.Leases {
		return list
	}
	republish := ""
	if c.RePublish != nil {
		republish = fmt.Sprintf("%s to %s, headers only %t", c.RePublish.Source, c.RePublish.Destination,
			c.RePublish.HeadersOnly)
	}
	return append(list, setting{"deny_delete", c.DenyDelete}, setting{"deny_purge", c.DenyPurge},
		setting{"republish", republish})
}

func criticalConsumer(c jetstream.ConsumerConfig) []setting {
	return []setting{
		{"filter_subject", c.FilterSubject}, {"filter_subjects", len(c.FilterSubjects)}, {"ack_policy", c.AckPolicy},
		{"deliver_policy", c.DeliverPolicy}, {"max_deliver", c.MaxDeliver}, {"headers_only", c.HeadersOnly},
		{"inactive_threshold", c.InactiveThreshold}, {"sample_freq", c.SampleFrequency},
	}
}

func compare(want, have []setting) (differ []string) {
	for i, w := range want {
		if h := have[i]; !reflect.DeepEqual(w.value, h.value) {
			differ = append(differ, fmt.Sprintf("%s is %v, want %v", w.name, h.value, w.value))
		}
	}
	return differ
}

// Present returns nil if the task's streams answer, by the calls that the roles have: reads by subject and, for the
// reports, a look at the consumer or else a publish that the stream cannot store. Streams that these credentials may
// not touch count as present: they are another role's. For a missing one it returns natsjs.ErrNoStream.
func Present(ctx context.Context, c *natsjs.Conn, task stream.Task) error {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return fmt.Errorf("streams of %q: %w", task, err)
	}
	touched := false
	for _, subject := range []string{task.Task(), task.Stage(), task.Lease(), task.Batch(1)} {
		_, of, err := stream.StreamOf(subject)
		if err == nil {
			err = forbidden(ctx, c, directGet+task.Name(of)+"."+subject)
		}
		if err == nil {
			_, err = c.Get(ctx, subject)
		}
		switch {
		case err == nil || errors.Is(err, stream.ErrNotFound):
			touched = true
		case !errors.Is(err, natsjs.ErrDenied):
			return fmt.Errorf("streams of %s: %w", task, err)
		}
	}
	_, err := consumerInfo(ctx, c, task.Name(stream.Reports))
	if errors.Is(err, natsjs.ErrDenied) {
		err = probe(ctx, c, task.Report(1, 1))
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, natsjs.ErrDenied) && touched:
		return nil
	}
	return fmt.Errorf("reports of %s: %w", task, err)
}

// WaitStreams waits until the task's streams are there, asking about once in every interval. Where the credentials may
// see the streams' settings, they are checked, and streams with other settings end the wait at once; where they may
// not, that the streams answer has to do: `learner doctor` checks the rest. A broker without a leader does not end the
// wait.
func WaitStreams(ctx context.Context, c *natsjs.Conn, task stream.Task, interval time.Duration) error {
	for {
		err := CheckStreams(ctx, c, task)
		if errors.Is(err, natsjs.ErrDenied) {
			err = Present(ctx, c, task)
		}
		if err == nil || !natsjs.Transient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(interval):
		}
	}
}
