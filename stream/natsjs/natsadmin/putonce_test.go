package natsadmin

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// first puts a record of each stream that holds one message a subject, and returns its handle and number.
func first(t *testing.T, c *natsjs.Conn, check func(subject, stands string, number uint64, h jetstream.Stream)) {
	t.Helper()
	provision(t, c, task, Options{})
	for _, subject := range []string{task.Batch(1), task.Claim(1), task.Round(1)} {
		r, err := c.PutOnce(t.Context(), subject, []byte("first"))
		if err != nil || !r.Ours {
			t.Fatal(r, err)
		}
		_, s, err := stream.StreamOf(subject)
		if err != nil {
			t.Fatal(err)
		}
		h, err := c.Admin().JetStream().Stream(t.Context(), task.Name(s))
		if err != nil {
			t.Fatal(err)
		}
		check(subject, task.Name(s), r.Standing.Sequence, h)
	}
}

// stands checks that the first message is still on a subject, and that nothing came and went on its stream since.
func stands(t *testing.T, c *natsjs.Conn, subject string, number uint64, h jetstream.Stream, after string) {
	t.Helper()
	m, err := c.Get(t.Context(), subject)
	if err != nil || string(m.Data) != "first" || m.Sequence != number {
		t.Fatalf("%s after %s: sequence %d, %v; want the first message at %d", subject, after, m.Sequence, err, number)
	}
	info, err := h.Info(t.Context())
	if err != nil || info.State.LastSeq != number || info.State.Msgs != number {
		t.Fatalf("%s after %s: %+v, %v, want %d messages", subject, after, info, err, number)
	}
}

// TestNothingReplacesARecord checks that a client that may publish on the subject of a batch, a claim or a round, with
// any header that the server knows, cannot replace the message there.
func TestNothingReplacesARecord(t *testing.T) {
	c := broker(t)
	first(t, c, func(subject, name string, number uint64, h jetstream.Stream) {
		last := number
		for what, header := range map[string]nats.Header{
			"no header":              nil,
			"rollup of the subject":  {"Nats-Rollup": {"sub"}},
			"rollup of the stream":   {"Nats-Rollup": {"all"}},
			"rollup with a sequence": {"Nats-Rollup": {"sub"}, "Nats-Expected-Last-Subject-Sequence": {fmt.Sprint(number)}},
			"a time to live":         {"Nats-TTL": {"1s"}},
			"no end of life":         {"Nats-TTL": {"never"}},
			"a new message id":       {"Nats-Msg-Id": {"new"}},
			"sequence 0":             {"Nats-Expected-Last-Subject-Sequence": {"0"}},
			"the subject's sequence": {"Nats-Expected-Last-Subject-Sequence": {fmt.Sprint(number)}},
			"another sequence":       {"Nats-Expected-Last-Subject-Sequence": {"999"}},
			"another subject's 0": {"Nats-Expected-Last-Subject-Sequence": {"0"},
				"Nats-Expected-Last-Subject-Sequence-Subject": {task.Batch(999)}},
			"the stream's sequence":     {"Nats-Expected-Last-Sequence": {fmt.Sprint(last)}},
			"the stream's name":         {"Nats-Expected-Stream": {name}},
			"a counter":                 {"Nats-Incr": {"+1"}},
			"an atomic batch":           {"Nats-Batch-Id": {"b"}, "Nats-Batch-Sequence": {"1"}, "Nats-Batch-Commit": {"1"}},
			"a schedule":                {"Nats-Schedule": {"@at 2000-01-01T00:00:00Z"}, "Nats-Schedule-Target": {subject}},
			"a marker":                  {"Nats-Marker-Reason": {"Purge"}},
			"a key-value deletion":      {"KV-Operation": {"PURGE"}, "Nats-Rollup": {"sub"}},
			"the name of a source":      {"Nats-Stream-Source": {"OTHER 1 > > " + subject}},
			"a sequence of a republish": {"Nats-Stream": {name}, "Nats-Sequence": {fmt.Sprint(last + 1)}},
		} {
			if err := c.NATS().PublishMsg(&nats.Msg{Subject: subject, Header: header, Data: []byte("second")}); err != nil {
				t.Fatal(err)
			}
			ack, err := c.Admin().JetStream().PublishMsg(t.Context(), &nats.Msg{Subject: subject, Header: header,
				Data: []byte("second")})
			if err == nil {
				t.Errorf("%s: a publish with %s is stored: %+v", subject, what, ack)
			} else if natsjs.Code(err) == 0 {
				t.Errorf("%s: a publish with %s: no answer of the broker: %v", subject, what, err)
			}
			stands(t, c, subject, number, h, "a publish with "+what)
		}
	})
}

// TestNobodyMakesRoom: nothing that an administrator can ask, short of deleting the message or changing the stream,
// takes a record away.
func TestNobodyMakesRoom(t *testing.T) {
	c := broker(t)
	first(t, c, func(subject, name string, number uint64, h jetstream.Stream) {
		_, s, _ := stream.StreamOf(subject)
		for what, ask := range map[string]func(context.Context) error{
			"a purge":              func(ctx context.Context) error { return h.Purge(ctx) },
			"a purge of a subject": func(ctx context.Context) error { return h.Purge(ctx, jetstream.WithPurgeSubject(subject)) },
			"a purge to a sequence": func(ctx context.Context) error {
				return h.Purge(ctx, jetstream.WithPurgeSequence(number+1))
			},
			"a purge that keeps": func(ctx context.Context) error {
				return h.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeKeep(0))
			},
			"a second stream": func(ctx context.Context) error {
				_, err := c.Admin().JetStream().CreateStream(ctx, jetstream.StreamConfig{Name: "OTHER", Subjects: []string{subject}})
				return err
			},
			"the stream again": func(ctx context.Context) error {
				config := streamConfig(task, s, Options{})
				config.DenyPurge, config.MaxMsgsPerSubject = false, 9
				_, err := c.Admin().JetStream().CreateStream(ctx, config)
				return err
			},
		} {
			if err := ask(t.Context()); err == nil {
				t.Errorf("%s: %s is not refused", subject, what)
			}
			stands(t, c, subject, number, h, what)
		}
	})
}
