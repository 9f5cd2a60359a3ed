package natsjs_test

import (
	"testing"

	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
)

// start starts a server that ends with the test.
func start(t testing.TB, c embedded.Config) *embedded.Server {
	t.Helper()
	if c.StoreDir == "" {
		c.StoreDir = t.TempDir()
	}
	e, err := embedded.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Shutdown)
	return e
}

// dial connects inside the process, until the test ends.
func dial(t testing.TB, e *embedded.Server, c natsjs.ConnectConfig) *natsjs.Conn {
	t.Helper()
	conn, err := e.Connect(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}
