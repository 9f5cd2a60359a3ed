package natsjs_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
)

// script gives scripted replies to puts on a subject, one after the other, and empty ones to reads until something is
// stored.
func script(t *testing.T, c *natsjs.Conn, subject string, answers ...string) (puts *atomic.Int64) {
	t.Helper()
	puts = new(atomic.Int64)
	task, s, err := stream.StreamOf(subject)
	if err != nil {
		t.Fatal(err)
	}
	respond := func(on string, f func(m *nats.Msg)) {
		if _, err := c.NATS().Subscribe(on, f); err != nil {
			t.Fatal(err)
		}
	}
	respond(subject, func(m *nats.Msg) {
		n := int(puts.Add(1))
		_ = m.Respond([]byte(answers[min(n, len(answers))-1]))
	})
	respond(natsjs.DirectGet+task.Name(s)+"."+subject, func(m *nats.Msg) {
		_ = m.RespondMsg(&nats.Msg{Header: nats.Header{"Status": {"404"}, "Description": {"Message Not Found"}}})
	})
	if err := c.NATS().Flush(); err != nil {
		t.Fatal(err)
	}
	return puts
}

// TestPutAfterAnAbandonedWrite: a leader refuses a put because another write of the subject is on its way, and dies
// before that write is decided. The subject is empty, and stays so unless somebody puts again: a writer that waited for
// the other's bytes would wait for ever, and with it the learner or the stage.
func TestPutAfterAnAbandonedWrite(t *testing.T) {
	refusal := func(code int, text string) string {
		return fmt.Sprintf(`{"error":{"code":400,"err_code":%d,"description":%q}}`, code, text)
	}
	for name, first := range map[string]string{
		"a write in flight":  refusal(10164, "wrong last sequence"),
		"no leader":          refusal(10008, "JetStream system temporarily unavailable"),
		"not the leader":     refusal(10009, "JetStream cluster can not handle request"),
		"not ready to check": refusal(10163, "expected last sequence per subject temporarily unavailable"),
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, embedded.Config{})
			puts := script(t, dial(t, e, natsjs.ConnectConfig{}), task.Claim(1), first, first,
				`{"stream":"PANLEARN_churn_ATTEMPTS","seq":7}`)
			c := dial(t, e, natsjs.ConnectConfig{AckTimeout: 20 * time.Second})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := c.PutOnce(ctx, task.Claim(1), []byte("mine"))
			if err != nil || !r.Ours || r.Standing.Sequence != 7 || puts.Load() != 3 {
				t.Errorf("%+v, %v after %d puts", r, err, puts.Load())
			}
		})
	}
}

// TestPutGivesUp: a conflict whose cause nobody can read is the caller's to try again, not a wait without an end.
func TestPutGivesUp(t *testing.T) {
	e := start(t, embedded.Config{})
	script(t, dial(t, e, natsjs.ConnectConfig{}), task.Claim(1),
		`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"}}`)
	c := dial(t, e, natsjs.ConnectConfig{AckTimeout: 50 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r, err := c.PutOnce(ctx, task.Claim(1), []byte("mine")); err == nil || ctx.Err() != nil {
		t.Errorf("nothing could be read, and the put says %+v, %v", r, err)
	}
}
