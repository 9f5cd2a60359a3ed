package permissions

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// TestRolesLive: our adapter does what each role has to do with the permissions that it has.
func TestRolesLive(t *testing.T) {
	b := shipped(t)
	ctx := t.Context()
	for _, role := range []string{learner, stage, helper, publisher} {
		if err := natsadmin.Provision(ctx, b.conn(t, role), task, natsadmin.Options{}); !errors.Is(err, natsjs.ErrDenied) {
			t.Errorf("%s provisions: %v, want it denied", role, err)
		}
		if err := natsadmin.Present(ctx, b.conn(t, role), task); !errors.Is(err, natsjs.ErrNoStream) {
			t.Errorf("%s looks for streams that are not there: %v", role, err)
		}
	}
	found := make(chan error, 1)
	waiting := b.conn(t, stage)
	go func() { found <- natsadmin.WaitStreams(ctx, waiting, task, 10*time.Millisecond) }()
	if err := natsadmin.Provision(ctx, b.conn(t, admin), task, natsadmin.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := <-found; err != nil {
		t.Errorf("the stage waits for streams: %v", err)
	}
	for _, role := range []string{learner, stage, helper, publisher, admin} {
		if err := natsadmin.Present(ctx, b.conn(t, role), task); err != nil {
			t.Errorf("%s looks for streams that are there: %v", role, err)
		}
	}

	wakes, err := b.conn(t, publisher).Watch(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	<-wakes
	if r, err := b.conn(t, learner).PutOnce(ctx, task.Round(1), []byte("round")); err != nil || !r.Ours {
		t.Fatalf("the learner announces: %v", err)
	}
	select {
	case w := <-wakes:
		if w.Subject != task.Round(1) || string(w.Data) != "round" {
			t.Errorf("a device woke to %q with %q", w.Subject, w.Data)
		}
	case <-time.After(patience):
		t.Fatal("the announcement woke no device")
	}
	if m, err := b.conn(t, publisher).Latest(ctx, task.Rounds()); err != nil || string(m.Data) != "round" {
		t.Errorf("a device reads the newest round: %v", err)
	}

	const n = 200
	reports := make([]stream.Outgoing, n)
	for i := range reports {
		reports[i] = stream.Outgoing{Subject: task.Report(1, 1), ID: [16]byte{byte(i)}, Data: []byte{byte(i)}}
	}
	acks, err := b.conn(t, publisher).Publish(ctx, reports)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range acks {
		if a.Status != stream.Stored {
			t.Fatalf("report %d: %v", i, a)
		}
	}
	reader, err := b.conn(t, stage).Reader(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	for len(seen) < n {
		got, err := reader.Fetch(ctx, 64, patience)
		if err != nil || len(got) == 0 {
			t.Fatalf("fetched %d of %d, then none: %v", len(seen), n, err)
		}
		for _, d := range got {
			seen[d.Sequence] = true
			if err := d.Ack(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := b.conn(t, publisher).Publish(ctx, []stream.Outgoing{{Subject: task.Report(2, 1), ID: [16]byte{1, 1},
		Data: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	queue, err := reader.Queue(ctx)
	if err != nil || queue.Messages == 0 || queue.MaxBytes == 0 {
		t.Errorf("the stage looks at its queue: %+v, %v", queue, err)
	}
	if err := reader.Purge(ctx, queue.Next); err != nil {
		t.Errorf("the stage purges: %v", err)
	}
	for end := time.Now().Add(patience); ; { // acknowledgements are not answered
		info, err := b.admin.Stream(ctx, task.Name(stream.Reports))
		if err != nil {
			t.Fatal(err)
		}
		left := info.CachedInfo().State.Msgs
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d reports are left after all were acknowledged or purged", left)
		}
	}
}

// TestDenialsAreFast: what a role may not do ends with an error that says so, not with a time limit.
func TestDenialsAreFast(t *testing.T) {
	s := shipped(t).scene(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	slow := func(role string) *natsjs.Conn {
		login := s.login(role)
		login.AckTimeout = time.Hour // nothing ends by itself
		c, err := natsjs.Connect(login)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	_, put := slow(learner).PutOnce(ctx, s.task.Batch(9), []byte("x"))
	_, get := slow(publisher).Get(ctx, s.task.Batch(1))
	_, swap := slow(learner).Swap(ctx, s.task.Lease(), 0, []byte("x"))
	_, publish := slow(stage).Publish(ctx, []stream.Outgoing{{Subject: s.task.Report(1, 1), Data: []byte("x")}})
	_, read := slow(learner).Reader(ctx, s.task)
	for what, err := range map[string]error{"put": put, "get": get, "swap": swap, "publish": publish, "reader": read,
		"check": natsadmin.CheckStreams(ctx, slow(learner), s.task)} {
		if !errors.Is(err, natsjs.ErrDenied) {
			t.Errorf("%s: %v, want that the broker denies it", what, err)
		}
	}
	for what, err := range map[string]error{"put": put, "get": get, "swap": swap} {
		if !errors.Is(err, stream.ErrRefused) {
			t.Errorf("%s: %v, want it final", what, err)
		}
	}
}

// TestWrongInbox: without an inbox that the permissions give, no answer comes, and the error says which flag to set.
func TestWrongInbox(t *testing.T) {
	s := shipped(t).scene(t)
	login := s.login(publisher)
	login.InboxPrefix, login.AckTimeout = "_INBOX", 100*time.Millisecond
	c, err := natsjs.Connect(login)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.Get(t.Context(), s.task.Round(1)); !errors.Is(err, natsjs.ErrDenied) ||
		!strings.Contains(err.Error(), "--inbox-prefix") {
		t.Errorf("a request with an inbox of somebody else: %v", err)
	}
}

// TestWhoMayConnect: the shipped configuration takes nobody without the authority's certificate and a known key, and
// nobody without TLS.
func TestWhoMayConnect(t *testing.T) {
	s, other := shipped(t), shipped(t)
	for name, change := range map[string]func(*natsjs.ConnectConfig){
		"no key":             func(c *natsjs.ConnectConfig) { c.NKey = "" },
		"another site's key": func(c *natsjs.ConnectConfig) { c.NKey = other.login(stage).NKey },
		"no certificate":     func(c *natsjs.ConnectConfig) { c.TLSCert, c.TLSKey = "", "" },
		"another's certificate": func(c *natsjs.ConnectConfig) {
			c.TLSCert, c.TLSKey = other.login(stage).TLSCert, other.login(stage).TLSKey
		},
		"trusts another site":     func(c *natsjs.ConnectConfig) { c.TLSCA = other.login(stage).TLSCA },
		"trusts the system alone": func(c *natsjs.ConnectConfig) { c.TLSCA = "" },
	} {
		login := s.login(stage)
		change(&login)
		if c, err := natsjs.Connect(login); err == nil {
			t.Errorf("%s: connected", name)
			c.Close()
		}
	}
	if c, err := natsjs.Connect(s.login(stage)); err != nil {
		t.Errorf("the stage itself: %v", err)
	} else {
		c.Close()
	}
}
