package permissions

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/internal/devca"
	"github.com/panlearn/panlearn/stream/natsjs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is for what must happen; nothing is concluded from its end but failure.
const patience = time.Minute

// The roles that devca makes users for.
const (
	admin      = "admin"
	learner    = "learner"
	stage      = "stage"
	publisher  = "publisher-1"
	publisher2 = "publisher-2"
	relay      = "relay"
	helper     = "helper"
)

// A broker is a server, and how a role connects to it.
type broker struct {
	url   string
	login func(role string) natsjs.ConnectConfig
	admin jetstream.JetStream
	conns map[string]*natsjs.Conn
	tasks int
}

// shipped returns a server with the configuration that we ship.
func shipped(t testing.TB) *broker {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	if err := devca.Write(devca.Config{Dir: dir, Publishers: 2, Lifetime: time.Hour, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	return start(t, filepath.Join(dir, "panlearn.conf"), func(role string) natsjs.ConnectConfig {
		at := func(name string) string { return filepath.Join(dir, name) }
		return natsjs.ConnectConfig{NKey: at(role + ".nk"), TLSCA: at("ca.pem"), TLSCert: at(role + ".pem"),
			TLSKey: at(role + "-key.pem")}
	})
}

// open returns a server without any authentication.
func open(t testing.TB) *broker {
	t.Helper()
	return start(t, write(t, "jetstream: enabled\n"), func(string) natsjs.ConnectConfig { return natsjs.ConnectConfig{} })
}

// permissions returns a server with one account for all and permissions to publish and subscribe: what one
// would write first.
func permissions(t testing.TB) *broker {
	t.Helper()
	config := write(t, `
jetstream: enabled
accounts { ALL { jetstream: enabled, users: [
  { user: admin, password: x }
  { user: learner, password: x, permissions: {
      publish: ["panlearn.*.task", "panlearn.*.round.*", "panlearn.*.end", "$JS.API.DIRECT.GET.*.panlearn.>"]
      subscribe: ["_INBOX.>", "panlearn.*.wake.>"] } }
  { user: stage, password: x, permissions: {
      publish: ["panlearn.*.stage", "panlearn.*.open.*.*", "panlearn.*.claim.*", "panlearn.*.close.*.*", "panlearn.*.lease",
        "panlearn.*.batch.*", "panlearn.*.spent.*.*", "$JS.API.DIRECT.GET.*.panlearn.>", "$JS.API.CONSUMER.MSG.NEXT.*.stage", "$JS.ACK.>"]
      subscribe: ["_INBOX.>", "panlearn.*.wake.>"] } }
  { user: helper, password: x, permissions: {
      publish: ["panlearn.*.helper", "panlearn.*.join.*.*", "panlearn.*.share.*", "$JS.API.DIRECT.GET.*.panlearn.>"]
      subscribe: ["_INBOX.>", "panlearn.*.wake.>", "panlearn.*.prepare.*"] } }
  { user: relay, password: x, permissions: {
      publish: ["panlearn.*.report.*.*", "$JS.API.DIRECT.GET.*.panlearn.*.round.*"], subscribe: ["_INBOX.>", "panlearn.*.wake.>"] } }
  { user: publisher-1, password: x, permissions: {
      publish: ["panlearn.*.report.*.*", "$JS.API.DIRECT.GET.*.panlearn.*.round.*"], subscribe: ["_INBOX.>", "panlearn.*.wake.>"] } }
  { user: publisher-2, password: x, permissions: {
      publish: ["panlearn.*.report.*.*", "$JS.API.DIRECT.GET.*.panlearn.*.round.*"], subscribe: ["_INBOX.>", "panlearn.*.wake.>"] } }
] } }
`)
	return start(t, config, func(role string) natsjs.ConnectConfig { return natsjs.ConnectConfig{URL: role + ":x@"} })
}

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startServer runs a server on a free port.
func startServer(t testing.TB, config string) *server.Server {
	t.Helper()
	o, err := server.ProcessConfigFile(config)
	if err != nil {
		t.Fatal(err)
	}
	o.Host, o.Port, o.StoreDir, o.NoSigs, o.NoLog = "127.0.0.1", server.RANDOM_PORT, t.TempDir(), true, true
	o.JetStreamMaxMemory, o.JetStreamMaxStore = 256<<20, 1<<40 // every task reserves the most its reports may take
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	s.Start()
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	return s
}

// start runs a server whose users log in so.
func start(t testing.TB, config string, login func(string) natsjs.ConnectConfig) *broker {
	t.Helper()
	s := startServer(t, config)
	var err error
	b := &broker{url: s.Addr().String(), conns: map[string]*natsjs.Conn{}}
	b.login = func(role string) natsjs.ConnectConfig {
		c := login(role)
		c.URL, c.Name, c.Log = "nats://"+c.URL+b.url, role, slog.New(slog.DiscardHandler)
		return c
	}
	if b.admin, err = jetstream.New(b.raw(t, admin).nc); err != nil {
		t.Fatal(err)
	}
	return b
}

// conn returns the role's connection by our own adapter.
func (b *broker) conn(t testing.TB, role string) *natsjs.Conn {
	t.Helper()
	if b.conns[role] == nil {
		c, err := natsjs.Connect(b.login(role))
		if err != nil {
			t.Fatal(err)
		}
		b.conns[role] = c
		t.Cleanup(c.Close)
	}
	return b.conns[role]
}

// A client is an attacker's connection, with a role's credentials and a client library that obeys.
type client struct {
	nc       *nats.Conn
	inbox    string
	violated chan string
	across   func()                    // behind a leaf node: returns when the broker has what was sent, and the leaf node what the broker sent
	mine     func(subject string) bool // whether across asks on it, or is answered there
}

// flush returns when the broker has what the client sent, and the client what the broker sent before.
func (c *client) flush(t *testing.T) {
	t.Helper()
	flush(t, c.nc)
	if c.across != nil {
		c.across()
		flush(t, c.nc)
	}
}

func (b *broker) raw(t testing.TB, role string) *client {
	t.Helper()
	login := b.login(role)
	c := &client{inbox: "_INBOX", violated: make(chan string, 1000)}
	options := []nats.Option{nats.Name(role), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			c.violated <- err.Error()
		}
	})}
	if login.NKey != "" {
		option, err := nats.NkeyOptionFromSeed(login.NKey)
		if err != nil {
			t.Fatal(err)
		}
		var o nats.Options
		if err := option(&o); err != nil {
			t.Fatal(err)
		}
		c.inbox = natsjs.InboxOf(o.Nkey)
		options = append(options, option, nats.RootCAs(login.TLSCA), nats.ClientCert(login.TLSCert, login.TLSKey),
			nats.CustomInboxPrefix(c.inbox))
	}
	if login.Creds != "" {
		option := nats.UserCredentials(login.Creds)
		var o nats.Options
		if err := option(&o); err != nil {
			t.Fatal(err)
		}
		token, err := o.UserJWT()
		if err != nil {
			t.Fatal(err)
		}
		claims, err := jwt.DecodeUserClaims(token)
		if err != nil {
			t.Fatal(err)
		}
		c.inbox = natsjs.InboxOf(claims.Subject)
		options = append(options, option, nats.RootCAs(login.TLSCA), nats.CustomInboxPrefix(c.inbox))
	}
	nc, err := nats.Connect(login.URL, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	c.nc = nc
	return c
}

// errViolation means that the server refused to let the client publish.
var errViolation = errors.New("permissions violation")

// request publishes and waits for the answer, or for the server's word that it may not.
func (c *client) request(t *testing.T, subject, body string) (*nats.Msg, error) {
	t.Helper()
	return c.requestMsg(t, &nats.Msg{Subject: subject, Data: []byte(body)})
}

func (c *client) requestMsg(t *testing.T, m *nats.Msg) (*nats.Msg, error) {
	t.Helper()
	wait, none := patience, errors.New("no answer")
	if c.across != nil { // a leaf node drops silently what it may not pass on
		wait, none = silence, errViolation
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), wait, none)
	defer cancel()
	ctx, violate := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case text := <-c.violated:
			violate(errors.Join(errViolation, errors.New(text)))
		case <-ctx.Done():
		}
	}()
	answer, err := c.nc.RequestMsgWithContext(ctx, m)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	violate(nil)
	<-done
	if err != nil && !errors.Is(err, errViolation) && !errors.Is(err, nats.ErrNoResponders) {
		t.Fatalf("%s: %v", m.Subject, err)
	}
	return answer, err
}
