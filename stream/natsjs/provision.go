package natsjs

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

// Provision creates the streams and the consumer of a task where they are missing. What is there already is left as
// it is; where a guarantee would not hold on it, that is an error that names the settings. It may be called again, and
// tries until ctx ends where a cluster has no leader or too few of its servers.
func Provision(ctx context.Context, c *Conn, task stream.Task, o Options) error {
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
		return transient(err) && deaf < maxDeaf
	}
	return c.insist(ctx, "provision "+string(task), wait, func() error { return provisionOnce(ctx, c, task, o) })
}

// maxDeaf is how often provisioning may find that nobody hears it, some 15 seconds: a server that starts takes connections
// before JetStream listens, but an account without JetStream's API stays as it is.
const maxDeaf = 12

func provisionOnce(ctx context.Context, c *Conn, task stream.Task, o Options) error {
	for _, s := range all() {
		want := streamConfig(task, s, o)
		have, err := c.streamInfo(ctx, want.Name)
		if err == nil && have.Config.Replicas < o.Replicas {
			return fmt.Errorf("provision: stream %s has %s, want %d: raise them with the nats command, or ask for fewer",
				want.Name, Copies(have.Config.Replicas), o.Replicas)
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = c.call(ctx, apiStreamCreate+want.Name, func(ctx context.Context) error {
				_, err := c.js.CreateStream(ctx, want)
				return err
			})
			if code(err) == codeNameInUse {
				err = nil // somebody else was faster; what they made is checked below
			}
		}
		if err != nil {
			return fmt.Errorf("provision %s: %w", want.Name, err)
		}
	}
	reports := task.Name(stream.Reports)
	err := c.call(ctx, apiConsumerCreate+reports+"."+Durable+"."+task.Reports(), func(ctx context.Context) error {
		_, err := c.js.CreateConsumer(ctx, reports, consumerConfig(task, o))
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

// CheckStreams compares the streams and the consumer of a task with what its guarantees need. Settings that an
// operator may choose (replicas, limits of reports, storage of reports) are not compared. A missing stream is
// ErrNoStream.
func CheckStreams(ctx context.Context, c *Conn, task stream.Task) error {
	if _, err := stream.ParseTask(string(task)); err != nil {
		return fmt.Errorf("check streams: %w", err)
	}
	var o Options
	if err := o.validate(); err != nil {
		return err
	}
	var differ []error
	for _, s := range all() {
		want := streamConfig(task, s, o)
		have, err := c.streamInfo(ctx, want.Name)
		if err != nil {
			return fmt.Errorf("stream %s: %w", want.Name, err)
		}
		if d := compare(critical(s, want), critical(s, have.Config)); len(d) > 0 {
			differ = append(differ, fmt.Errorf("stream %s: %s: change them with the nats command, or delete the stream",
				want.Name, strings.Join(d, "; ")))
		}
	}
	have, err := c.consumerInfo(ctx, task.Name(stream.Reports), Durable)
	if err != nil {
		return fmt.Errorf("consumer %s of %s: %w", Durable, task.Name(stream.Reports), err)
	}
	if d := compare(criticalConsumer(consumerConfig(task, o)), criticalConsumer(have.Config)); len(d) > 0 {
		differ = append(differ, fmt.Errorf("consumer %s of %s: %s: delete it and provision again",
			Durable, task.Name(stream.Reports), strings.Join(d, "; ")))
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
		{"max_msgs_per_subject", c.MaxMsgsPerSubject}, {"discard_new_per_subject", c.DiscardNewPerSubject},
		{"allow_rollup_hdrs", c.AllowRollup}, {"allow_msg_ttl", c.AllowMsgTTL}, {"allow_msg_counter", c.AllowMsgCounter},
		{"allow_msg_schedules", c.AllowMsgSchedules}, {"allow_atomic", c.AllowAtomicPublish}, {"allow_batched", c.AllowBatchPublish},
		{"no_ack", c.NoAck}, {"sealed", c.Sealed},
		{"mirror", c.Mirror != nil}, {"sources", len(c.Sources)}, {"subject_transform", c.SubjectTransform != nil},
		{"max_msgs", c.MaxMsgs}, {"persist_mode", c.PersistMode},
	}
	if s == stream.Reports {
		return list
	}
	list = append(list, setting{"allow_direct", c.AllowDirect}, setting{"storage", c.Storage}, setting{"max_age", c.MaxAge},
		setting{"max_bytes", c.MaxBytes})
	if s == stream.Leases {
		return list
	}
	republish := ""
	if c.RePublish != nil {
		republish = fmt.Sprintf("%s to %s, headers only %t", c.RePublish.Source, c.RePublish.Destination, c.RePublish.HeadersOnly)
	}
	return append(list, setting{"deny_delete", c.DenyDelete}, setting{"deny_purge", c.DenyPurge}, setting{"republish", republish})
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
