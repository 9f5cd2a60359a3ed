package natsjs

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/streamtest"
)

const testAckWait = 2 * time.Second

func start(t *testing.T, c EmbeddedConfig) *Embedded {
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

func dial(t *testing.T, e *Embedded, c ConnectConfig) *Conn {
	t.Helper()
	conn, err := e.Connect(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func provision(t *testing.T, c *Conn, task stream.Task, o Options) {
	t.Helper()
	if err := Provision(t.Context(), c, task, o); err != nil {
		t.Fatal(err)
	}
}

// TestContract runs the suite through a loopback listener and a proxy that loses acknowledgements.
func TestContract(t *testing.T) {
	e := start(t, EmbeddedConfig{Listen: "127.0.0.1:0"})
	contract(t, dial(t, e, ConnectConfig{}), e.URL(), Options{})
}

// TestContractDeep runs it on memory reports, and on a cluster of three servers, where reads may lag behind writes.
func TestContractDeep(t *testing.T) {
	if !longtest.Run(t, "the contract on memory reports and on a cluster of three") {
		return
	}
	t.Run("MemoryReports", func(t *testing.T) {
		e := start(t, EmbeddedConfig{Listen: "127.0.0.1:0"})
		contract(t, dial(t, e, ConnectConfig{}), e.URL(), Options{MemoryReports: true})
	})
	t.Run("Cluster", func(t *testing.T) {
		url := cluster(t).address(0)
		c, err := Connect(ConnectConfig{URL: url, AckTimeout: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		contract(t, c, url, Options{Replicas: 3})
	})
}

// contract runs the suite on a broker at url; admin provisions.
func contract(t *testing.T, admin *Conn, url string, o Options) {
	var tasks atomic.Int64
	o.AckWait, o.MaxReportBytes = testAckWait, 4<<20
	streamtest.Run(t, func(t *testing.T) streamtest.Broker {
		p := newProxy(t, url)
		t.Cleanup(p.close)
		c, err := Connect(ConnectConfig{URL: p.url(), AckTimeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return streamtest.Broker{
			Records: c, ReportWriter: c, Limits: c.Limits(), Settle: testAckWait + testAckWait/2, MaxReportBytes: int(o.MaxReportBytes),
			Task: func(t *testing.T) stream.Task {
				task := stream.Task(fmt.Sprintf("task-%d", tasks.Add(1)))
				provision(t, admin, task, o)
				return task
			},
			Reader: func(t *testing.T, task stream.Task) stream.ReportReader {
				r, err := c.Reader(t.Context(), task)
				if err != nil {
					t.Fatal(err)
				}
				return r
			},
			Redeliver: func(*testing.T, stream.Task) {}, // time does
			LoseAck:   func(*testing.T) { p.loseAck() },
		}
	})
}
