package natsjs_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/panlearn/panlearn/stream/natsjs"
)

// A tally is a log handler that counts records by a part of their text.
type tally struct {
	part  string
	found chan struct{}
}

func (*tally) Enabled(context.Context, slog.Level) bool { return true }
func (h *tally) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h *tally) WithGroup(string) slog.Handler          { return h }
func (h *tally) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if strings.Contains(strings.ToLower(fmt.Sprint(a.Value)), h.part) {
			select {
			case h.found <- struct{}{}:
			default:
			}
		}
		return true
	})
	return nil
}

// TestTurnedAwayForAWhile: a server that comes back does not know its users for a while. A client that was turned away
// more than once still asks again: a process that lost its connection for ever would wait for a broker that is there.
func TestTurnedAwayForAWhile(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	listen := func(token string) *server.Server {
		t.Helper()
		s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoSigs: true, Authorization: token})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("the server does not listen")
		}
		return s
	}
	stop := func(s *server.Server) {
		s.Shutdown()
		s.WaitForShutdown()
	}
	first := listen("")
	refusals := &tally{part: "authorization", found: make(chan struct{}, 8)}
	c, err := natsjs.Connect(natsjs.ConnectConfig{URL: fmt.Sprintf("nats://127.0.0.1:%d", port), Reconnect: soon,
		Log: slog.New(refusals)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	stop(first)
	second := listen("of others")
	limit := time.After(2 * time.Minute)
	for range 3 {
		select {
		case <-refusals.found:
		case <-limit:
			t.Error("the client no longer asks")
		}
	}
	stop(second)
	third := listen("")
	defer stop(third)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !c.Connected() && !t.Failed() {
		select {
		case <-tick.C:
		case <-limit:
			t.Error("the client did not come back")
		}
	}
}

// TestTurnedAwayAtFirst: a process that the broker takes as no user says what its operator has to look at.
func TestTurnedAwayAtFirst(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	other, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := other.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoSigs: true,
		Nkeys: []*server.NkeyUser{{Nkey: public}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not listen")
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "left.nk")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	for nkey, want := range map[string]string{file: file + ": it was revoked or replaced", "": "--creds or --nkey"} {
		c, err := natsjs.Connect(natsjs.ConnectConfig{URL: fmt.Sprintf("nats://127.0.0.1:%d", port), NKey: nkey})
		if err == nil {
			c.Close()
			t.Fatal("the broker took somebody else")
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("with %q: %v, want %q in it", nkey, err, want)
		}
	}
}
