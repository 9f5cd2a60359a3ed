package natsjs_test

import (
	"context"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// through connects through a proxy, with pings that notice a dead connection soon.
func through(t *testing.T, p *proxy, ping time.Duration) *natsjs.Conn {
	t.Helper()
	c, err := natsjs.Connect(natsjs.ConnectConfig{URL: p.url(), AckTimeout: time.Second, Ping: ping, Reconnect: soon})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// carried repeats a call until a connection carries it: on a busy machine pings are late, and a connection that is well
// is replaced too.
func carried(t *testing.T, call func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for err := call(); err != nil; err = call() {
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(soon):
		}
	}
}

// TestSilence: an open connection that carries nothing, as after a router forgot it, is replaced by another one.
// Meanwhile every call ends, and what was written counts once.
func TestSilence(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{Listen: "127.0.0.1:0"})
	p := newProxy(t, e.URL())
	t.Cleanup(p.close)
	operator := dial(t, e, natsjs.ConnectConfig{})
	provision(t, operator, task, natsadmin.Options{})
	c := through(t, p, time.Second)
	r, err := c.Reader(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	wakes, err := c.Watch(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	<-wakes
	p.silence()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.PutOnce(ctx, task.Claim(1), []byte("first")); err == nil {
		t.Error("a put through a dead connection")
	}
	if got, err := r.Fetch(ctx, 10, time.Minute); len(got) > 0 || err == nil {
		t.Errorf("a fetch through a dead connection: %d, %v", len(got), err)
	}
	if r := put(t, c, task.Claim(1), "first"); !r.Ours { // through another connection
		t.Errorf("%+v", r)
	}
	<-wakes // of the reconnection
	report := []stream.Outgoing{{Subject: task.Report(1, 1), ID: [16]byte{1}, Data: []byte("x")}}
	var acks []stream.Ack
	carried(t, func() (err error) { acks, err = c.Publish(t.Context(), report); return err })
	if s := acks[0].Status; s != stream.Stored && s != stream.Duplicate {
		t.Errorf("publish by the new connection: %+v", acks)
	}
	var got []stream.Delivery
	carried(t, func() (err error) { got, err = r.Fetch(t.Context(), 10, time.Minute); return err })
	if len(got) != 1 {
		t.Errorf("fetch by the new connection: %d reports", len(got))
	}
	if m, err := operator.Get(t.Context(), task.Claim(1)); err != nil || string(m.Data) != "first" || m.Sequence != 1 {
		t.Errorf("what stands: %+v, %v", m, err)
	}
}

// TestSlowLink: over a link on which a fetch takes longer than its caller has, the caller gets what came in time; the
// rest comes again, and nothing is lost.
func TestSlowLink(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{Listen: "127.0.0.1:0"})
	p := newProxy(t, e.URL())
	t.Cleanup(p.close)
	operator := dial(t, e, natsjs.ConnectConfig{})
	provision(t, operator, task, natsadmin.Options{AckWait: time.Second})
	const n = 16
	var sent []stream.Outgoing
	for i := range byte(n) {
		sent = append(sent, stream.Outgoing{Subject: task.Report(1, 1), ID: [16]byte{i + 1}, Data: append([]byte{i},
			make([]byte, 8<<10)...)})
	}
	if acks, err := operator.Publish(t.Context(), sent); err != nil || acks[n-1].Status != stream.Stored {
		t.Fatal(err)
	}
	c := through(t, p, time.Minute)
	r, err := c.Reader(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	p.slow(128 << 10) // 16 reports of 8 KiB are a second
	taken := map[byte]bool{}
	short := 0
	for deadline := time.Now().Add(2 * time.Minute); len(taken) < n && time.Now().Before(deadline); {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		got, _ := r.Fetch(ctx, n, time.Second)
		cancel()
		if len(got) < n {
			short++
		}
		for _, d := range got {
			taken[d.Data[0]] = true
			_ = d.Ack()
		}
	}
	if len(taken) != n || short == 0 {
		t.Errorf("%d of %d reports came, %d fetches ended early", len(taken), n, short)
	}
}

// TestListingOfASilentBroker: a listing of records that the network cuts off is an error, and no short list.
func TestListingOfASilentBroker(t *testing.T) {
	t.Parallel()
	e := start(t, embedded.Config{Listen: "127.0.0.1:0"})
	direct := dial(t, e, natsjs.ConnectConfig{})
	provision(t, direct, task, natsadmin.Options{})
	const records = 1000 // more than are asked for at a time
	for r := stream.Round(1); r <= records; r++ {
		if _, err := direct.PutOnce(t.Context(), task.Round(r), []byte("round")); err != nil {
			t.Fatal(err)
		}
	}
	p := newProxy(t, e.URL())
	t.Cleanup(p.close)
	c, err := natsjs.Connect(natsjs.ConnectConfig{URL: p.url(), AckTimeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	listed := 0
	for _, err = range (natsadmin.Records{Conn: c}).Records(t.Context(), task, stream.Rounds) {
		if p.silence(); err == nil {
			listed++
		}
	}
	if err == nil || listed == 0 || listed == records {
		t.Errorf("%d of %d records were listed, and then: %v", listed, records, err)
	}
}
