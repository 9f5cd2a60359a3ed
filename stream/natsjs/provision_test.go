package natsjs

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

const task stream.Task = "churn"

func TestProvisionAgain(t *testing.T) {
	c := dial(t, start(t, EmbeddedConfig{}), ConnectConfig{})
	if err := CheckStreams(t.Context(), c, task); !errors.Is(err, ErrNoStream) {
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
	provision(t, c, task, Options{MaxReportBytes: 1 << 20, MaxMsgSize: 4096, MaxAge: time.Hour, MemoryReports: true, AckWait: time.Second, MaxAckPending: 16})
	if m, err := c.Get(t.Context(), task.Round(1)); err != nil || string(m.Data) != "x" {
		t.Fatalf("after provisioning again: %v, %v", m, err)
	}
}

func TestProvisionRefusesOtherSettings(t *testing.T) {
	c := dial(t, start(t, EmbeddedConfig{MaxStore: 1 << 40}), ConnectConfig{})
	for _, test := range []struct {
		stream  stream.Stream
		setting string
		change  func(*jetstream.StreamConfig)
	}{
		{stream.Rounds, "deny_purge", func(s *jetstream.StreamConfig) { s.DenyPurge = false }},
		{stream.Rounds, "deny_delete", func(s *jetstream.StreamConfig) { s.DenyDelete = false }},
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
		{stream.Batches, "max_bytes", func(s *jetstream.StreamConfig) { s.MaxBytes = 1 << 20 }},
		{stream.Leases, "max_msgs_per_subject", func(s *jetstream.StreamConfig) { s.MaxMsgsPerSubject = -1 }},
		{stream.Leases, "allow_rollup_hdrs", func(s *jetstream.StreamConfig) { s.AllowRollup = true }},
		{stream.Reports, "retention", func(s *jetstream.StreamConfig) { s.Retention = jetstream.LimitsPolicy }},
		{stream.Reports, "discard ", func(s *jetstream.StreamConfig) { s.Discard = jetstream.DiscardOld }},
		{stream.Reports, "no_ack", func(s *jetstream.StreamConfig) { s.NoAck = true }},
	} {
		t.Run(test.stream.String()+"/"+strings.TrimSpace(test.setting), func(t *testing.T) {
			name := stream.Task(strings.ToLower(test.stream.String()) + "-" + strings.TrimSpace(test.setting))
			if len(name) > 32 {
				name = name[:32]
			}
			var o Options
			if err := o.validate(); err != nil {
				t.Fatal(err)
			}
			config := streamConfig(name, test.stream, o)
			test.change(&config)
			if _, err := c.js.CreateStream(t.Context(), config); err != nil {
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
	c := dial(t, start(t, EmbeddedConfig{}), ConnectConfig{})
	provision(t, c, task, Options{})
	name := task.Name(stream.Reports)
	if err := c.js.DeleteConsumer(t.Context(), name, Durable); err != nil {
		t.Fatal(err)
	}
	config := consumerConfig(task, Options{AckWait: time.Second, MaxAckPending: 10})
	config.MaxDeliver = 3 // a report that is delivered three times would be lost
	if _, err := c.js.CreateConsumer(t.Context(), name, config); err != nil {
		t.Fatal(err)
	}
	if err := Provision(t.Context(), c, task, Options{}); err == nil || !strings.Contains(err.Error(), "max_deliver") {
		t.Fatalf("want an error that names max_deliver, got: %v", err)
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
	c := dial(t, start(t, EmbeddedConfig{}), ConnectConfig{})
	if err := Provision(t.Context(), c, task, Options{Replicas: 3}); err == nil || !strings.Contains(err.Error(), "one replica") {
		t.Fatalf("want the fix in the error, got: %v", err)
	}
}

func TestWaitStreams(t *testing.T) {
	c := dial(t, start(t, EmbeddedConfig{}), ConnectConfig{})
	done := make(chan error)
	go func() { done <- WaitStreams(t.Context(), c, task, time.Millisecond) }()
	provision(t, c, task, Options{})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestRecordsCannotBeChanged holds the server to what the protocol takes from it: nothing that a writer may send
// overwrites, deletes or ages a record.
func TestRecordsCannotBeChanged(t *testing.T) {
	c := dial(t, start(t, EmbeddedConfig{}), ConnectConfig{})
	provision(t, c, task, Options{})
	for _, subject := range []string{task.Round(1), task.Claim(1), task.Batch(1)} {
		r, err := c.PutOnce(t.Context(), subject, []byte("first"))
		if err != nil {
			t.Fatal(err)
		}
		_, s, _ := stream.StreamOf(subject)
		name := task.Name(s)
		plain := &nats.Msg{Subject: subject, Data: []byte("second")}
		if _, err := c.js.PublishMsg(t.Context(), plain); code(err) != codeStoreFailed || !conflict(err) {
			t.Errorf("%s: plain publish: %v", subject, err)
		}
		for header, value := range map[string]string{"Nats-Rollup": "sub", "Nats-TTL": "1s", "Nats-Expected-Last-Subject-Sequence": "1"} {
			m := &nats.Msg{Subject: subject, Data: []byte("second"), Header: nats.Header{header: []string{value}}}
			if _, err := c.js.PublishMsg(t.Context(), m); err == nil {
				t.Errorf("%s: a publish with %s is stored", subject, header)
			}
		}
		handle, err := c.js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := handle.DeleteMsg(t.Context(), r.Standing.Sequence); err == nil {
			t.Errorf("%s: deleted", subject)
		}
		if err := handle.Purge(t.Context()); err == nil {
			t.Errorf("%s: purged", name)
		}
		if m, err := c.Get(t.Context(), subject); err != nil || string(m.Data) != "first" || m.Sequence != r.Standing.Sequence {
			t.Errorf("%s after all that: %+v, %v", subject, m, err)
		}
	}
}
