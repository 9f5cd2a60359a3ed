package natsadmin

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const task stream.Task = "churn"

// broker starts a server in the process and connects to it.
func broker(t *testing.T) *natsjs.Conn {
	t.Helper()
	e, err := embedded.Start(embedded.Config{StoreDir: t.TempDir(), MaxStore: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Shutdown)
	c, err := e.Connect(natsjs.ConnectConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func provision(t *testing.T, c *natsjs.Conn, task stream.Task, o Options) {
	t.Helper()
	if err := Provision(t.Context(), c, task, o); err != nil {
		t.Fatal(err)
	}
}
