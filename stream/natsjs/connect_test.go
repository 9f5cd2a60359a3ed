package natsjs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

func TestConnectRefuses(t *testing.T) {
	for want, c := range map[string]ConnectConfig{
		"url missing":          {},
		"tls certificate":      {URL: "nats://127.0.0.1:1", TLSCert: "cert.pem"},
		"one or none":          {URL: "nats://127.0.0.1:1", Creds: "a", NKey: "b"},
		"nkey file":            {URL: "nats://127.0.0.1:1", NKey: "/no/such/file"},
		"ack timeout":          {URL: "nats://127.0.0.1:1", AckTimeout: -1},
		"connect to nats://12": {URL: "nats://127.0.0.1:1"},
	} {
		if _, err := Connect(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: want an error with %q, got: %v", c, want, err)
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
			_, err = Connect(ConnectConfig{URL: "nats://" + l.Addr().String(), AckTimeout: time.Second})
			if !errors.Is(err, ErrUnreachable) {
				t.Errorf("%q, reset %v: %v", says, reset, err)
			}
			l.Close()
			<-done
		}
	}
}

func TestInboxPrefix(t *testing.T) {
	c := dial(t, start(t, EmbeddedConfig{}), ConnectConfig{InboxPrefix: "_INBOX_stage"})
	if inbox := c.nc.NewInbox(); !strings.HasPrefix(inbox, "_INBOX_stage.") {
		t.Errorf("inbox %s", inbox)
	}
	provision(t, c, task, Options{})
	if _, err := c.Publish(t.Context(), []stream.Outgoing{{Subject: task.Report(1, 1), Data: []byte("x")}}); err != nil {
		t.Error(err)
	}
}

// TestReconnect: a connection outlives its server, and every watch wakes when it is back.
func TestReconnect(t *testing.T) {
	dir := t.TempDir()
	e := start(t, EmbeddedConfig{StoreDir: dir, Listen: "127.0.0.1:0"})
	address := strings.TrimPrefix(e.URL(), "nats://")
	c, err := Connect(ConnectConfig{URL: e.URL(), AckTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	provision(t, c, task, Options{})
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
	start(t, EmbeddedConfig{StoreDir: dir, Listen: address})
	<-wakes // of the reconnection
	if m, err := c.Get(ctx, task.Round(1)); err != nil || string(m.Data) != "x" || !c.Connected() {
		t.Errorf("get after the reconnection: %v, %v", m, err)
	}
}

// TestPublishThroughCuts: whatever the network does, retries of the same ids store every report once, and what an
// acknowledgement says is true.
func TestPublishThroughCuts(t *testing.T) {
	e := start(t, EmbeddedConfig{Listen: "127.0.0.1:0"})
	p := newProxy(t, e.URL())
	t.Cleanup(p.close)
	admin := dial(t, e, ConnectConfig{})
	provision(t, admin, task, Options{})
	c, err := Connect(ConnectConfig{URL: p.url(), AckTimeout: 2 * time.Second, MaxPending: 64})
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
	r, err := admin.Reader(ctx, task)
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

func TestErrorsSayTheFix(t *testing.T) {
	api := func(code jetstream.ErrorCode, text string) error {
		return fmt.Errorf("nats: %w", &jetstream.APIError{ErrorCode: code, Description: text})
	}
	for _, test := range []struct {
		err       error
		is        error
		conflict  bool
		notStored bool
		text      string
	}{
		{api(10071, "wrong last sequence: 3"), nil, true, false, "3"},
		{api(10164, "wrong last sequence"), nil, true, false, ""},
		{api(10077, "maximum messages per subject exceeded"), nil, true, false, ""},
		{api(10077, "maximum bytes exceeded"), nil, false, true, ""},
		{api(10077, "no space left on device"), nil, false, false, ""},
		{api(10054, "message size exceeds maximum allowed"), stream.ErrRefused, false, true, "dimension"},
		{api(10060, "expected stream does not match"), stream.ErrRefused, false, false, "another stream"},
		{api(10059, "stream not found"), ErrNoStream, false, false, "learner provision"},
		{api(10047, "insufficient storage resources available"), nil, false, false, "max_file_store"},
		{api(10074, "replicas > 1 not supported in non-clustered mode"), nil, false, false, "one replica"},
		{api(10039, "JetStream not enabled for account"), nil, false, false, "enable JetStream"},
		{nats.ErrNoResponders, ErrNoStream, false, false, "learner provision"},
		{nats.ErrMaxPayload, stream.ErrRefused, false, true, ""},
		{nats.ErrAuthorization, nil, false, false, "credentials"},
		{context.Canceled, context.Canceled, false, false, ""},
	} {
		got := explain(test.err)
		if test.is != nil && !errors.Is(got, test.is) || !errors.Is(got, test.err) || !strings.Contains(got.Error(), test.text) {
			t.Errorf("explain(%v) = %v", test.err, got)
		}
		if conflict(test.err) != test.conflict || notStored(test.err) != test.notStored {
			t.Errorf("%v: conflict %t, not stored %t", test.err, conflict(test.err), notStored(test.err))
		}
	}
	if explain(nil) != nil {
		t.Error("explain(nil)")
	}
}

func FuzzDirectAnswer(f *testing.F) {
	f.Add("", "panlearn.churn.round.1", "1")
	f.Add("404", "", "")
	f.Add("408", "panlearn.churn.round.1", "1")
	f.Add("", "panlearn.churn.round.x", "1")
	f.Add("", "panlearn.churn.round.1", "-1")
	f.Fuzz(func(t *testing.T, status, subject, sequence string) {
		m := &nats.Msg{Header: nats.Header{"Status": {status}, "Nats-Subject": {subject}, "Nats-Sequence": {sequence}}, Data: []byte("x")}
		got, err := directAnswer(m)
		if err == nil && (got.Sequence == 0 || got.Subject != subject) {
			t.Errorf("%+v", got)
		}
	})
}
