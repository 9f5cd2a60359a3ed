package natsjs

import (
	"flag"
	"log/slog"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil { // the tests that are parallel wait, and compute little
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// Start starts a server that ends with the test.
func Start(t testing.TB, c EmbeddedConfig) *Embedded {
	t.Helper()
	if c.StoreDir == "" {
		c.StoreDir = t.TempDir()
	}
	e, err := StartEmbedded(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Shutdown)
	return e
}

// Dial connects inside the process, until the test ends.
func Dial(t testing.TB, e *Embedded, c ConnectConfig) *Conn {
	t.Helper()
	conn, err := e.Connect(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// Session ends when the connection that stands now is lost.
func (c *Conn) Session() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session.Done()
}

// NewServerLog returns the log that an embedded server gets.
func NewServerLog(log *slog.Logger) *serverLog { return &serverLog{log: log} }

// Fatal returns the first line of a failure to start.
func (l *serverLog) Fatal() string { return l.fatal() }
