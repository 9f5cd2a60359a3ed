package permissions

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// task is a placeholder for the task of a scene in an attack's subjects.
const task stream.Task = "churn"

// A scene is a task of its own on a broker that may have others, with some records and a report.
type scene struct {
	*broker
	task  stream.Task
	sent  byte // reports
	falls bool // attacks are expected to work
}

// Markers of what an attacker may be after.
const (
	secretReport = "the sealed report of somebody else"
	secretBatch  = "the released batch"
	secretShare  = "the helper's share"
)

func (b *broker) scene(t *testing.T) *scene {
	t.Helper()
	b.tasks++
	s := &scene{broker: b, task: stream.Task(fmt.Sprintf("task-%d", b.tasks))}
	if err := natsadmin.Provision(t.Context(), b.conn(t, admin), s.task, natsadmin.Options{Helper: true, Grants: true}); err != nil {
		t.Fatal(err)
	}
	s.put(t, learner, task.Round(1), "round")
	s.put(t, stage, task.Batch(1), secretBatch)
	s.put(t, helper, task.Share(1), secretShare)
	s.report(t)
	return s
}

// of replaces the placeholder in text by the scene's task.
func (s *scene) of(text string) string { return strings.ReplaceAll(text, string(task), string(s.task)) }

// put writes a record as the role that may.
func (s *scene) put(t *testing.T, role, subject, data string) {
	t.Helper()
	r, err := s.conn(t, role).PutOnce(t.Context(), s.of(subject), []byte(data))
	if err != nil || !r.Ours {
		t.Fatalf("put %s as %s: %v", subject, role, err)
	}
}

// report publishes somebody else's report, and waits for its acknowledgement.
func (s *scene) report(t *testing.T) {
	t.Helper()
	s.sent++
	acks, err := s.conn(t, publisher2).Publish(t.Context(), []stream.Outgoing{{
		Subject: s.task.Report(1, 1), ID: [16]byte{s.sent}, Data: []byte(secretReport)}})
	if err != nil || acks[0].Status != stream.Stored {
		t.Fatalf("report: %v, %v", acks, err)
	}
}

// standing returns the newest message on a subject, as the administrator sees it; nil without one.
func (s *scene) standing(t *testing.T, subject string) *jetstream.RawStreamMsg {
	t.Helper()
	_, of, err := stream.StreamOf(subject)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.stream(t, of).GetLastMsgForSubject(t.Context(), s.of(subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (s *scene) stream(t *testing.T, of stream.Stream) jetstream.Stream {
	t.Helper()
	handle, err := s.admin.Stream(t.Context(), s.task.Name(of))
	if err != nil {
		t.Fatal(err)
	}
	return handle
}

// reports returns how many reports the work queue holds.
func (s *scene) reports(t *testing.T) uint64 {
	t.Helper()
	return s.stream(t, stream.Reports).CachedInfo().State.Msgs
}
