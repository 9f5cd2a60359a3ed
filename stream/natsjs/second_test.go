package natsjs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream"
)

// TestSecondBatchIsImpossible: once a batch, a claim, a Round, an Open or a Close stands, nothing that a writer can send
// and nothing that an administrator can ask, short of changing the stream, puts another message in its place.
func TestSecondBatchIsImpossible(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{Listen: "127.0.0.1:0", MaxStore: 1 << 40})
	secondBatch(t, dial(t, e, ConnectConfig{}), e.URL(), Options{Replicas: 1})
}

// secondBatch is the test on a broker whose administrator admin is.
func secondBatch(t *testing.T, admin *Conn, url string, o Options) {
	p := newProxy(t, url)
	t.Cleanup(p.close)
	c, err := Connect(ConnectConfig{URL: p.url()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	t.Run("Puts", func(t *testing.T) { secondPut(t, admin, c, p, "puts", o) })
	t.Run("Publishes", func(t *testing.T) { secondPublish(t, admin, "publishes", o) })
	t.Run("Requests", func(t *testing.T) { secondRequest(t, admin, "requests", o) })
	t.Run("MessageIDs", func(t *testing.T) { secondID(t, admin, "ids", o) })
	if o.Replicas == 1 || longtest.Run(t, "an administrator's changes on a cluster") {
		t.Run("Updates", func(t *testing.T) { lowered(t, admin, o) })
	}
}

// onceSubjects are one of every kind of subject that is written once; on a cluster, the two that a release rests on.
func onceSubjects(t *testing.T, task stream.Task, o Options) []string {
	release := []string{task.Batch(1), task.Claim(1)}
	if o.Replicas > 1 && !longtest.Run(t, "other subjects than batch and claim on a cluster") {
		return release
	}
	return append(release, task.Open(1, 1), task.Close(1, 1), task.Stage(), task.Task(), task.Round(1), task.End())
}

// standing insists that the first message stands on a subject, and that nothing came and went on its stream since.
func standing(t *testing.T, c *Conn, first stream.Message, last uint64, after string) {
	t.Helper()
	m, err := await(t, c, first.Subject)
	if err != nil || string(m.Data) != string(first.Data) || m.Sequence != first.Sequence {
		t.Fatalf("%s after %s: sequence %d, %v; want the first message at %d", first.Subject, after, m.Sequence, err, first.Sequence)
	}
	if got := state(t, c, first.Subject); got.LastSeq != last || got.Msgs != last {
		t.Fatalf("%s after %s: %d messages up to sequence %d, want %d", first.Subject, after, got.Msgs, got.LastSeq, last)
	}
}

// await reads what is known to stand; a replica may lag.
func await(t *testing.T, c *Conn, subject string) (m stream.Message, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for pause := firstPause; ; pause = sleep(ctx, pause) {
		if m, err = c.Get(ctx, subject); err == nil || ctx.Err() != nil {
			return m, err
		}
	}
}

// state is what the leader of a subject's stream holds.
func state(t *testing.T, c *Conn, subject string) jetstream.StreamState {
	t.Helper()
	task, s, err := stream.StreamOf(subject)
	if err != nil {
		t.Fatal(err)
	}
	var have jetstream.Stream
	err = c.insist(t.Context(), "state", transient, func() error {
		have, err = c.js.Stream(t.Context(), task.Name(s))
		return explain(unanswered(t.Context(), err))
	})
	if err != nil {
		t.Fatal(err)
	}
	return have.CachedInfo().State
}

// put puts until nothing is unknown.
func put(t *testing.T, c *Conn, subject, data string) stream.PutResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		r, err := c.PutOnce(ctx, subject, []byte(data))
		if err == nil {
			return r
		}
		if ctx.Err() != nil || errors.Is(err, stream.ErrRefused) {
			t.Fatal(err)
		}
	}
}

// secondPut puts again by the port. Acknowledgements of a batch are lost too, which costs a reconnection each.
func secondPut(t *testing.T, admin, c *Conn, p *proxy, task stream.Task, o Options) {
	provision(t, admin, task, o)
	for _, subject := range onceSubjects(t, task, o) {
		lose := func() {
			if subject == task.Batch(1) {
				p.loseAck()
			}
		}
		lose()
		r := put(t, c, subject, "first")
		if !r.Ours || string(r.Standing.Data) != "first" {
			t.Fatalf("%s: first put: %+v", subject, r)
		}
		last := state(t, admin, subject).LastSeq
		for _, other := range []string{"second", "", "first "} {
			if r := put(t, c, subject, other); r.Ours || string(r.Standing.Data) != "first" {
				t.Errorf("%s: put of %q: %+v", subject, other, r)
			}
		}
		lose()
		if r := put(t, c, subject, "second"); r.Ours || string(r.Standing.Data) != "first" {
			t.Errorf("%s: put with a lost acknowledgement: %+v", subject, r)
		}
		if r := put(t, c, subject, "first"); !r.Ours || r.Standing.Sequence == 0 {
			t.Errorf("%s: put of the same bytes: %+v", subject, r)
		}
		standing(t, admin, r.Standing, last, "puts")
	}
}

// secondPublish publishes as somebody would who has the permission to publish, and not our code.
func secondPublish(t *testing.T, c *Conn, task stream.Task, o Options) {
	provision(t, c, task, o)
	for i, subject := range onceSubjects(t, task, o) {
		first := put(t, c, subject, "first").Standing
		_, s, _ := stream.StreamOf(subject)
		last := state(t, c, subject).LastSeq
		for name, header := range map[string]nats.Header{
			"no header":                 nil,
			"rollup of the subject":     {"Nats-Rollup": {"sub"}},
			"rollup of the stream":      {"Nats-Rollup": {"all"}},
			"rollup with a sequence":    {"Nats-Rollup": {"sub"}, "Nats-Expected-Last-Subject-Sequence": {fmt.Sprint(first.Sequence)}},
			"a time to live":            {"Nats-TTL": {"1s"}},
			"no end of life":            {"Nats-TTL": {"never"}},
			"a new message id":          {"Nats-Msg-Id": {fmt.Sprint("new ", i)}},
			"sequence 0":                {"Nats-Expected-Last-Subject-Sequence": {"0"}},
			"the subject's sequence":    {"Nats-Expected-Last-Subject-Sequence": {fmt.Sprint(first.Sequence)}},
			"another sequence":          {"Nats-Expected-Last-Subject-Sequence": {"999"}},
			"another subject's 0":       {"Nats-Expected-Last-Subject-Sequence": {"0"}, "Nats-Expected-Last-Subject-Sequence-Subject": {task.Batch(999)}},
			"the stream's sequence":     {"Nats-Expected-Last-Sequence": {fmt.Sprint(last)}},
			"the stream's name":         {"Nats-Expected-Stream": {task.Name(s)}},
			"a counter":                 {"Nats-Incr": {"+1"}},
			"an atomic batch":           {"Nats-Batch-Id": {"b"}, "Nats-Batch-Sequence": {"1"}, "Nats-Batch-Commit": {"1"}},
			"a schedule":                {"Nats-Schedule": {"@at 2000-01-01T00:00:00Z"}, "Nats-Schedule-Target": {subject}},
			"a marker":                  {"Nats-Marker-Reason": {"Purge"}},
			"a key-value deletion":      {"KV-Operation": {"PURGE"}, "Nats-Rollup": {"sub"}},
			"the name of a source":      {"Nats-Stream-Source": {"OTHER 1 > > " + subject}},
			"a sequence of a republish": {"Nats-Stream": {task.Name(s)}, "Nats-Sequence": {fmt.Sprint(last + 1)}},
		} {
			if err := c.nc.PublishMsg(&nats.Msg{Subject: subject, Header: header, Data: []byte("second")}); err != nil {
				t.Fatal(err)
			}
			ack, err := c.js.PublishMsg(t.Context(), &nats.Msg{Subject: subject, Header: header, Data: []byte("second")})
			if err == nil {
				t.Errorf("%s: a publish with %s is stored: %+v", subject, name, ack)
			} else if code(err) == 0 {
				t.Errorf("%s: a publish with %s: no answer of the broker: %v", subject, name, err)
			}
			standing(t, c, first, last, "a publish with "+name)
		}
	}
}

// secondRequest asks the broker to make room.
func secondRequest(t *testing.T, c *Conn, task stream.Task, o Options) {
	provision(t, c, task, o)
	for _, subject := range onceSubjects(t, task, o) {
		first := put(t, c, subject, "first").Standing
		_, s, _ := stream.StreamOf(subject)
		last := state(t, c, subject).LastSeq
		h, err := c.js.Stream(t.Context(), task.Name(s))
		if err != nil {
			t.Fatal(err)
		}
		for name, ask := range map[string]func(context.Context) error{
			"a delete":             func(ctx context.Context) error { return h.DeleteMsg(ctx, first.Sequence) },
			"a secure delete":      func(ctx context.Context) error { return h.SecureDeleteMsg(ctx, first.Sequence) },
			"a purge":              func(ctx context.Context) error { return h.Purge(ctx) },
			"a purge of a subject": func(ctx context.Context) error { return h.Purge(ctx, jetstream.WithPurgeSubject(subject)) },
			"a purge to a sequence": func(ctx context.Context) error {
				return h.Purge(ctx, jetstream.WithPurgeSequence(first.Sequence+1))
			},
			"a purge that keeps": func(ctx context.Context) error {
				return h.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeKeep(0))
			},
			"a second stream": func(ctx context.Context) error {
				_, err := c.js.CreateStream(ctx, jetstream.StreamConfig{Name: "OTHER", Subjects: []string{subject}})
				return err
			},
			"the stream again": func(ctx context.Context) error {
				config := streamConfig(task, s, o)
				config.DenyPurge, config.DenyDelete, config.MaxMsgsPerSubject = false, false, 9
				_, err := c.js.CreateStream(ctx, config)
				return err
			},
		} {
			if err := ask(t.Context()); err == nil {
				t.Errorf("%s: %s is not refused", subject, name)
			}
			standing(t, c, first, last, name)
		}
	}
}

// secondID says that the duplicate window protects nothing and is not needed: inside it a second message is acknowledged
// as a duplicate and dropped, after it it is refused.
func secondID(t *testing.T, c *Conn, task stream.Task, o Options) {
	provision(t, c, task, o)
	config := streamConfig(task, stream.Batches, o)
	config.Duplicates = 100 * time.Millisecond // as low as the server goes; the product does not care (see CheckStreams)
	if _, err := c.js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if err := CheckStreams(t.Context(), c, task); err != nil {
		t.Fatalf("another duplicate window: %v", err)
	}
	subject := task.Batch(1)
	first, err := c.js.Publish(t.Context(), subject, []byte("first"), jetstream.WithMsgID("id"), jetstream.WithExpectLastSequencePerSubject(0))
	if err != nil {
		t.Fatal(err)
	}
	// The id is forgotten when it is stored again on a subject that is free. Until then, and after, the batch stands.
	last := uint64(1)
	for r := uint64(2); last == 1; r++ {
		probe, err := c.js.Publish(t.Context(), task.Batch(stream.Round(r)), []byte("probe"), jetstream.WithMsgID("id"))
		if err != nil {
			t.Fatal(err)
		}
		if !probe.Duplicate {
			last = probe.Sequence
		}
		second, err := c.js.Publish(t.Context(), subject, []byte("second"), jetstream.WithMsgID("id"))
		if err == nil && (!second.Duplicate || second.Sequence != first.Sequence && second.Sequence != last) {
			t.Fatalf("a second message with the same id: %+v", second)
		}
		standing(t, c, stream.Message{Subject: subject, Sequence: first.Sequence, Data: []byte("first")}, last, "the same id")
	}
	if _, err := c.js.Publish(t.Context(), subject, []byte("second"), jetstream.WithMsgID("another")); !conflict(err) {
		t.Errorf("a second message past the window: %v", err)
	}
	if r := put(t, c, subject, "second"); r.Ours || string(r.Standing.Data) != "first" {
		t.Errorf("a put past the window: %+v", r)
	}
}

// lowered: what an administrator can change so that a second message becomes possible, the server refuses or CheckStreams
// names. PutOnce does not overwrite even then.
func lowered(t *testing.T, c *Conn, o Options) {
	for i, test := range []struct {
		setting string // that CheckStreams names; empty: the server refuses
		change  func(*jetstream.StreamConfig)
	}{
		{"", func(s *jetstream.StreamConfig) { s.DenyDelete = false }},
		{"", func(s *jetstream.StreamConfig) { s.DenyPurge = false }},
		{"", func(s *jetstream.StreamConfig) { s.AllowRollup = true }},
		{"", func(s *jetstream.StreamConfig) { s.Retention = jetstream.WorkQueuePolicy }},
		{"", func(s *jetstream.StreamConfig) { s.Storage = jetstream.MemoryStorage }},
		{"", func(s *jetstream.StreamConfig) { s.AllowMsgCounter = true }},
		{"max_msgs_per_subject", func(s *jetstream.StreamConfig) { s.MaxMsgsPerSubject = 2 }},
		{"discard_new_per_subject", func(s *jetstream.StreamConfig) { s.DiscardNewPerSubject = false }},
		{"discard ", func(s *jetstream.StreamConfig) { s.Discard, s.DiscardNewPerSubject = jetstream.DiscardOld, false }},
		{"max_age", func(s *jetstream.StreamConfig) { s.MaxAge = time.Hour }},
		{"allow_msg_ttl", func(s *jetstream.StreamConfig) { s.AllowMsgTTL = true }},
		{"allow_atomic", func(s *jetstream.StreamConfig) { s.AllowAtomicPublish = true }},
		{"allow_batched", func(s *jetstream.StreamConfig) { s.AllowBatchPublish = true }},
		{"allow_direct", func(s *jetstream.StreamConfig) { s.AllowDirect = false }},
		{"no_ack", func(s *jetstream.StreamConfig) { s.NoAck = true }},
		{"subjects", func(s *jetstream.StreamConfig) { s.Subjects = append(s.Subjects, "elsewhere.>") }},
		{"subject_transform", func(s *jetstream.StreamConfig) {
			s.SubjectTransform = &jetstream.SubjectTransformConfig{Source: s.Subjects[0], Destination: strings.Replace(s.Subjects[0], "*", "{{wildcard(1)}}", 1)}
		}},
	} {
		task := stream.Task(fmt.Sprintf("lowered-%d", i))
		provision(t, c, task, o)
		first := put(t, c, task.Batch(1), "first").Standing
		config := streamConfig(task, stream.Batches, o)
		config.Subjects = append([]string(nil), config.Subjects...)
		test.change(&config)
		_, err := c.js.UpdateStream(t.Context(), config)
		switch checked := CheckStreams(t.Context(), c, task); {
		case test.setting == "" && (code(err) == 0 || checked != nil):
			t.Errorf("change %d: %v, check %v; want a refusal of the server that changes nothing", i, err, checked)
		case test.setting != "" && (err != nil || checked == nil || !strings.Contains(checked.Error(), test.setting)):
			t.Errorf("change of %s: %v, check %v; want a check that names it", test.setting, err, checked)
		}
		if test.setting == "no_ack" || test.setting == "allow_direct" {
			continue // nothing answers a put, or a get
		}
		if r := put(t, c, task.Batch(1), "second"); r.Ours || string(r.Standing.Data) != "first" || r.Standing.Sequence != first.Sequence {
			t.Errorf("change of %q: a second put: %+v", test.setting, r)
		}
	}
}
