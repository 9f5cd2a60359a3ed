package natsjs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

func TestConnectRefuses(t *testing.T) {
	for want, c := range map[string]natsjs.ConnectConfig{
		"url missing":          {},
		"tls certificate":      {URL: "nats://127.0.0.1:1", TLSCert: "cert.pem"},
		"one or none":          {URL: "nats://127.0.0.1:1", Creds: "a", NKey: "b"},
		"nkey file":            {URL: "nats://127.0.0.1:1", NKey: "/no/such/file"},
		"ack timeout":          {URL: "nats://127.0.0.1:1", AckTimeout: -1},
		"connect to nats://12": {URL: "nats://127.0.0.1:1"},
	} {
		if _, err := natsjs.Connect(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: want an error with %q, got: %v", c, want, err)
		}
	}
}

// TestConnectHidesPasswords: whatever an address looks like, no error has a word from before its @; it has the hosts.
func TestConnectHidesPasswords(t *testing.T) {
	for _, url := range []string{
		"nats://me:hush@127.0.0.1:1", "tls://me:hush@127.0.0.1:1", "me:hush@127.0.0.1:1", "nats://hush@127.0.0.1:1",
		"hush@127.0.0.1:1",
		"nats://127.0.0.1:1,nats://me:hush@127.0.0.1:2", "nats://me:hush@127.0.0.1:1, hush@127.0.0.1:2,",
		"nats://me:hush%25@127.0.0.1:1",
		"nats://me:hush%zz@127.0.0.1:1", "nats://me:hu/sh@127.0.0.1:1", "nats://me:12/hush@127.0.0.1:1",
		"nats://me:12?hush@127.0.0.1:1",
		"nats://me:12#hush@127.0.0.1:1", "nats://me:hush,hush@127.0.0.1:1", "nats://me:hush@127.0.0.1:one", "nats://hush@",
		"://hush@127.0.0.1:1",
		"nats://me:hush\x7f@127.0.0.1:1", "hush@127.0.0.1:1/hush",
	} {
		var log bytes.Buffer
		_, err := natsjs.Connect(natsjs.ConnectConfig{URL: url,
			Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		for e := err; e != nil; e = errors.Unwrap(e) {
			if text := e.Error() + log.String(); strings.Contains(text, "hu") || strings.Contains(text, "sh@") {
				t.Errorf("%s: %s", url, text)
			}
		}
		var wrong *natsjs.ConfigError
		if err == nil || !errors.As(err, &wrong) && !strings.Contains(err.Error(), "@127.0.0.1:") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestConnectToABrokerThatDies: it takes the connection and is gone, before or after it has said who it is.
func TestConnectToABrokerThatDies(t *testing.T) {
	for _, says := range []string{"", "INFO {\"server_id\":\"x\",\"max_payload\":1048576}\r\n"} {
		for _, reset := range []bool{false, true} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = io.WriteString(conn, says)
					if reset {
						_ = conn.(*net.TCPConn).SetLinger(0)
					}
					conn.Close()
				}
			}()
			_, err = natsjs.Connect(natsjs.ConnectConfig{URL: "nats://" + l.Addr().String(), AckTimeout: time.Second})
			if !errors.Is(err, natsjs.ErrUnreachable) {
				t.Errorf("%q, reset %v: %v", says, reset, err)
			}
			l.Close()
			<-done
		}
	}
}

func TestInboxPrefix(t *testing.T) {
	c := dial(t, start(t, embedded.Config{}), natsjs.ConnectConfig{InboxPrefix: "_INBOX_stage"})
	if inbox := c.NATS().NewInbox(); !strings.HasPrefix(inbox, "_INBOX_stage.") {
		t.Errorf("inbox %s", inbox)
	}
	provision(t, c, task, natsadmin.Options{})
	if _, err := c.Publish(t.Context(), []stream.Outgoing{{Subject: task.Report(1, 1), Data: []byte("x")}}); err != nil {
		t.Error(err)
	}
}

// TestReconnect: a connection outlives its server, and every watch wakes when it is back.
func TestReconnect(t *testing.T) {
	dir := t.TempDir()
	e := start(t, embedded.Config{StoreDir: dir, Listen: "127.0.0.1:0"})
	address := strings.TrimPrefix(e.URL(), "nats://")
	c, err := natsjs.Connect(natsjs.ConnectConfig{URL: e.URL(), AckTimeout: time.Second, Reconnect: soon})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	provision(t, c, task, natsadmin.Options{})
	ctx := t.Context()
	wakes, err := c.Watch(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	<-wakes
	if _, err := c.PutOnce(ctx, task.Round(1), []byte("x")); err != nil {
		t.Fatal(err)
	}
	<-wakes
	e.Shutdown()
	if _, err := c.Get(ctx, task.Round(1)); err == nil || errors.Is(err, stream.ErrNotFound) {
		t.Errorf("get without a server: %v", err)
	}
	acks, err := c.Publish(ctx, []stream.Outgoing{{Subject: task.Report(1, 1), Data: []byte("x")}})
	if err == nil || acks[0].Status != stream.Unknown {
		t.Errorf("publish without a server: %v, %v", acks, err)
	}
	start(t, embedded.Config{StoreDir: dir, Listen: address})
	<-wakes // of the reconnection
	if m, err := c.Get(ctx, task.Round(1)); err != nil || string(m.Data) != "x" || !c.Connected() {
		t.Errorf("get after the reconnection: %v, %v", m, err)
	}
}

// TestPublishThroughCuts: whatever the network does, retries of the same ids store every report once, and what an
// acknowledgement says is true.
func TestPublishThroughCuts(t *testing.T) {
	e := start(t, embedded.Config{Listen: "127.0.0.1:0"})
	p := newProxy(t, e.URL())
	t.Cleanup(p.close)
	operator := dial(t, e, natsjs.ConnectConfig{})
	provision(t, operator, task, natsadmin.Options{})
	c, err := natsjs.Connect(natsjs.ConnectConfig{URL: p.url(), AckTimeout: 2 * time.Second, MaxPending: 64,
		Reconnect: soon})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	const n = 5000
	sent := make([]stream.Outgoing, n)
	for i := range sent {
		sent[i] = stream.Outgoing{Subject: task.Report(1, 1), Data: []byte{byte(i), byte(i >> 8)}}
		binary.BigEndian.PutUint64(sent[i].ID[:], uint64(i)+1)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	acks := make([]stream.Ack, n)
	for round := 0; ; round++ {
		var again []stream.Outgoing
		var index []int
		for i, a := range acks {
			if a.Status == stream.Unknown {
				again, index = append(again, sent[i]), append(index, i)
			}
		}
		if len(again) == 0 {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("%d reports still unknown", len(again))
		}
		if round < 3 {
			p.loseAck()
		}
		got, _ := c.Publish(ctx, again)
		for j, a := range got {
			acks[index[j]] = a
		}
	}
	r, err := operator.Reader(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	stored := map[uint64]string{}
	for len(stored) < n {
		got, err := r.Fetch(ctx, 1000, time.Second)
		if err != nil || len(got) == 0 {
			t.Fatalf("%d of %d reports are stored, %v", len(stored), n, err)
		}
		for _, d := range got {
			stored[d.Sequence] = string(d.Data)
			if err := d.Ack(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, _ := r.Fetch(ctx, 10, 0); len(got) != 0 {
		t.Errorf("%d reports are stored twice", len(got))
	}
	for i, a := range acks {
		if (a.Status != stream.Stored && a.Status != stream.Duplicate) || stored[a.Sequence] != string(sent[i].Data) {
			t.Fatalf("report %d: %+v", i, a)
		}
	}
}

// TestCallsWithoutABroker: every call that meets a lost connection says so, and none that the library's buffer is full.
func TestCallsWithoutABroker(t *testing.T) {
	e := start(t, embedded.Config{Listen: "127.0.0.1:0"})
	c := dial(t, e, natsjs.ConnectConfig{URL: e.URL()})
	provision(t, c, task, natsadmin.Options{})
	r, err := c.Reader(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	lost := natsjs.Session(c)
	e.Shutdown()
	<-lost
	_, got := c.Get(t.Context(), task.Task())
	_, swapped := c.Swap(t.Context(), task.Lease(), 0, []byte("x"))
	_, fetched := r.Fetch(t.Context(), 1, 0)
	_, published := c.Publish(t.Context(), []stream.Outgoing{{Subject: task.Report(1, 1), Data: []byte("x")}})
	for call, err := range map[string]error{"get": got, "swap": swapped, "fetch": fetched, "publish": published,
		"purge": r.Purge(t.Context(), 1)} {
		if !errors.Is(err, stream.ErrDisconnected) || strings.Contains(err.Error(), "buffer") {
			t.Errorf("%s: %v", call, err)
		}
	}
}
