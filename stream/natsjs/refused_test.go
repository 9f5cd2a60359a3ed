package natsjs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// TestRefusedIsNotStored: a full stream's reply to a publish is about that publish: nothing of it is there, then or
// later, and its id is free.
func TestRefusedIsNotStored(t *testing.T) {
	e := start(t, embedded.Config{})
	c := dial(t, e, natsjs.ConnectConfig{})
	js := c.Admin().JetStream()
	for i, full := range []struct {
		reason stream.Reason
		limit  func(*jetstream.StreamConfig)
	}{
		{stream.StreamFull, func(s *jetstream.StreamConfig) { s.MaxMsgs = 3 }},
		{stream.AttemptFull, func(s *jetstream.StreamConfig) { s.MaxMsgsPerSubject, s.DiscardNewPerSubject = 3, true }},
	} {
		task := stream.Task(fmt.Sprint("full", i))
		provision(t, c, task, natsadmin.Options{})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		s, err := js.Stream(ctx, task.Name(stream.Reports))
		if err != nil {
			t.Fatal(err)
		}
		config := s.CachedInfo().Config
		full.limit(&config)
		if _, err := js.UpdateStream(ctx, config); err != nil {
			t.Fatal(err)
		}
		out := make([]stream.Outgoing, 5)
		for i := range out {
			out[i] = stream.Outgoing{Subject: task.Report(1, 1), ID: [16]byte{byte(i + 1)}, Data: []byte("report")}
		}
		publish := func(out []stream.Outgoing, want ...stream.Ack) {
			t.Helper()
			got, err := c.Publish(ctx, out)
			for i := range got {
				if (got[i].Status == stream.Refused) != strings.Contains(got[i].Cause, "does a stage work?") {
					t.Errorf("%s: %v", task, got[i])
				}
				got[i].Cause = ""
			}
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v, %v, want %v", task, got, err, want)
			}
		}
		refused := stream.Ack{Status: stream.Refused, Reason: full.reason}
		stored := func(sequence uint64) stream.Ack { return stream.Ack{Status: stream.Stored, Sequence: sequence} }
		publish(out, stored(1), stored(2), stored(3), refused, refused)
		publish(out[3:], refused, refused)
		if err := s.DeleteMsg(ctx, 1); err != nil { // as the stage's acknowledgement does
			t.Fatal(err)
		}
		publish(out[3:], stored(4), refused)
		info, err := s.Info(ctx)
		if err != nil || info.State.Msgs != 3 || info.State.LastSeq != 4 {
			t.Errorf("%s: %+v, %v: want 3 messages, the last one the 4th", task, info.State, err)
		}
	}
}
