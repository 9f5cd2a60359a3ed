package natsadmin

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

func TestProvisionAgain(t *testing.T) {
	c := broker(t)
	if err := CheckStreams(t.Context(), c, task); !errors.Is(err, natsjs.ErrNoStream) {
		t.Fatalf("before: %v", err)
	}
	// Learner and stage may both provision.
	errs := make([]error, 4)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = Provision(t.Context(), c, task, Options{}) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutOnce(t.Context(), task.Round(1), []byte("x")); err != nil {
		t.Fatal(err)
	}
	// Another operator's limits are no reason to refuse, and change nothing.
	provision(t, c, task, Options{MaxReportBytes: 1 << 20, MaxMsgSize: 4096, MaxAge: time.Hour, MemoryReports: true,
		AckWait: time.Second, MaxAckPending: 16})
	if m, err := c.Get(t.Context(), task.Round(1)); err != nil || string(m.Data) != "x" {
		t.Fatalf("after provisioning again: %v, %v", m, err)
	}
}

func TestProvisionRefusesOtherSettings(t *testing.T) {
	c := broker(t)
	for _, test := range []struct {
		stream  stream.Stream
		setting string
		change  func(*jetstream.StreamConfig)
	}{
		{stream.Rounds, "deny_purge", func(s *jetstream.StreamConfig) { s.DenyPurge = false }},
		{stream.Rounds, "deny_delete", func(s *jetstream.StreamConfig) { s.DenyDelete = true }},
		{stream.Rounds, "republish", func(s *jetstream.StreamConfig) { s.RePublish = nil }},
		{stream.Rounds, "storage", func(s *jetstream.StreamConfig) { s.Storage = jetstream.MemoryStorage }},
		{stream.Attempts, "discard_new_per_subject", func(s *jetstream.StreamConfig) { s.DiscardNewPerSubject = false }},
		{stream.Attempts, "max_msgs_per_subject", func(s *jetstream.StreamConfig) { s.MaxMsgsPerSubject = 2 }},
		{stream.Attempts, "allow_direct", func(s *jetstream.StreamConfig) { s.AllowDirect = false }},
		{stream.Attempts, "subjects", func(s *jetstream.StreamConfig) { s.Subjects = s.Subjects[:2] }},
		{stream.Batches, "discard ", func(s *jetstream.StreamConfig) {
			s.Discard, s.DiscardNewPerSubject = jetstream.DiscardOld, false
		}},
		{stream.Batches, "max_age", func(s *jetstream.StreamConfig) { s.MaxAge = time.Hour }},
		{stream.Batches, "allow_msg_ttl", func(s *jetstream.StreamConfig) { s.AllowMsgTTL = true }},
		{stream.Batches, "max_msgs ", func(s *jetstream.StreamConfig) { s.MaxMsgs = 10 }},
		{stream.Batches, "allow_atomic", func(s *jetstream.StreamConfig) { s.AllowAtomicPublish = true }},
		{stream.Batches, "allow_batched", func(s *jetstream.StreamConfig) { s.AllowBatchPublish = true }},
		{stream.Batches, "subject_transform", func(s *jetstream.StreamConfig) {
			s.SubjectTransform = &jetstream.SubjectTransformConfig{Source: s.Subjects[0],
				Destination: strings.Replace(s.Subjects[0], "*", "{{wildcard(1)}}", 1)}
		}},
		{stream.Batches, "max_bytes", func(s *jetstream.StreamConfig) { s.MaxBytes = 1 << 20 }},
		{stream.Leases, "max_msgs_per_subject", func(s *jetstream.StreamConfig) { s.MaxMsgsPerSubject = -1 }},
		{stream.Leases, "allow_rollup_hdrs", func(s *jetstream.StreamConfig) { s.AllowRollup = true }},
		{stream.Reports, "retention", func(s *jetstream.StreamConfig) { s.Retention = jetstream.LimitsPolicy }},
		{stream.Reports, "discard ", func(s *jetstream.StreamConfig) {
			s.Discard,
				s.DiscardNewPerSubject = jetstream.DiscardOld, false
		}},
		{stream.Reports, "discard_new_per_subject", func(s *jetstream.StreamConfig) { s.DiscardNewPerSubject = false }},
		{stream.Reports, "a limit of max_msgs", func(s *jetstream.StreamConfig) {
			s.MaxMsgsPerSubject,
				s.DiscardNewPerSubject = -1, false
		}},
		{stream.Reports, "no_ack", func(s *jetstream.StreamConfig) { s.NoAck = true }},
	} {
		t.Run(test.stream.String()+"/"+strings.TrimSpace(test.setting), func(t *testing.T) {
			name := stream.Task(strings.ToLower(test.stream.String()) + "-" + strings.ReplaceAll(strings.TrimSpace(test.setting),
				" ", "-"))
			if len(name) > 32 {
				name = name[:32]
			}
			var o Options
			if err := o.validate(); err != nil {
				t.Fatal(err)
			}
			config := streamConfig(name, test.stream, o)
			test.change(&config)
			if _, err := c.Admin().JetStream().CreateStream(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			err := Provision(t.Context(), c, name, Options{})
			if err == nil || !strings.Contains(err.Error(), config.Name) || !strings.Contains(err.Error(), test.setting) {
				t.Fatalf("want an error that names %s and %s, got: %v", config.Name, test.setting, err)
			}
		})
	}
}

func TestProvisionRefusesOtherConsumer(t *testing.T) {
	c := broker(t)
	provision(t, c, task, Options{})
	name := task.Name(stream.Reports)
	if err := c.Admin().JetStream().DeleteConsumer(t.Context(), name, natsjs.Durable); err != nil {
		t.Fatal(err)
	}
	config := consumerConfig(task, Options{AckWait: time.Second, MaxAckPending: 10})
	config.MaxDeliver = 3 // a report that is delivered three times would be lost
	if _, err := c.Admin().JetStream().CreateConsumer(t.Context(), name, config); err != nil {
		t.Fatal(err)
	}
	if err := Provision(t.Context(), c, task, Options{}); err == nil || !strings.Contains(err.Error(), "max_deliver") {
		t.Fatalf("want an error that names max_deliver, got: %v", err)
	}
}

// TestProvisionAfterADeath: a stage puts its identity as soon as its stream exists. If the provisioning process died
// before it made the next stream, provisioning goes on; if any round was opened, or a batch is gone, it refuses.
func TestProvisionAfterADeath(t *testing.T) {
	c := broker(t)
	for name, test := range map[stream.Task]struct {
		put  []string
		gone stream.Stream
		want error
	}{
		"stage":   {[]string{stream.Task("stage").Stage()}, stream.Batches, nil},
		"nothing": {nil, stream.Attempts, nil},
		"open":    {[]string{stream.Task("open").Stage(), stream.Task("open").Open(1, 1)}, stream.Batches, errLost},
		"task":    {[]string{stream.Task("task").Task()}, stream.Batches, errLost},
		"rounds":  {[]string{stream.Task("rounds").Stage(), stream.Task("rounds").Open(1, 1)}, stream.Rounds, errLost},
		"batch":   {[]string{stream.Task("batch").Batch(1)}, stream.Rounds, errLost},
	} {
		provision(t, c, name, Options{})
		for _, subject := range test.put {
			if _, err := c.PutOnce(t.Context(), subject, []byte("a record")); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Admin().JetStream().DeleteStream(t.Context(), name.Name(test.gone)); err != nil {
			t.Fatal(err)
		}
		if err := Provision(t.Context(), c, name, Options{}); !errors.Is(err, test.want) {
			t.Errorf("%s, without %s: %v, want %v", name, test.gone, err, test.want)
		}
	}
}

func TestOptionsRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"replicas": {Replicas: 2}, "max report bytes": {MaxReportBytes: -1}, "max message size": {MaxMsgSize: 1 << 31},
		"max age": {MaxAge: time.Second}, "ack wait": {AckWait: -1}, "max ack pending": {MaxAckPending: -1},
	} {
		if err := Provision(t.Context(), nil, task, o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Provision(t.Context(), nil, "a.b", Options{}); err == nil {
		t.Error("task a.b: no error")
	}
}

func TestProvisionMoreReplicasThanServers(t *testing.T) {
	c := broker(t)
	if err := Provision(t.Context(), c, task, Options{Replicas: 3}); err == nil ||
		!strings.Contains(err.Error(), "one replica") {
		t.Fatalf("want the fix in the error, got: %v", err)
	}
	provision(t, c, "single", Options{})
	if err := Provision(t.Context(), c, "single", Options{Replicas: 3}); err == nil ||
		!strings.Contains(err.Error(), "has 1 replica, want 3") {
		t.Errorf("streams of one replica stand for streams of three: %v", err)
	}
}

func TestWaitStreams(t *testing.T) {
	c := broker(t)
	done := make(chan error)
	go func() { done <- WaitStreams(t.Context(), c, task, time.Millisecond) }()
	provision(t, c, task, Options{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
