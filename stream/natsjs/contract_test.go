package natsjs_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/streamtest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

const task stream.Task = "churn"

const (
	testAckWait = 2 * time.Second
	soon        = 20 * time.Millisecond
)

func provision(t *testing.T, c *natsjs.Conn, task stream.Task, o natsadmin.Options) {
	t.Helper()
	if err := natsadmin.Provision(t.Context(), c, task, o); err != nil {
		t.Fatal(err)
	}
}

// TestContract runs the suite through a loopback listener and a proxy that loses acknowledgements.
func TestContract(t *testing.T) {
	e := start(t, embedded.Config{Listen: "127.0.0.1:0"})
	contract(t, dial(t, e, natsjs.ConnectConfig{}), e.URL(), natsadmin.Options{})
}

// TestContractDeep runs it on memory reports, and on a cluster of three servers, where reads may lag behind writes.
func TestContractDeep(t *testing.T) {
	if !longtest.Run(t, "the contract on memory reports and on a cluster of three, about a minute") {
		return
	}
	t.Run("MemoryReports", func(t *testing.T) {
		e := start(t, embedded.Config{Listen: "127.0.0.1:0"})
		contract(t, dial(t, e, natsjs.ConnectConfig{}), e.URL(), natsadmin.Options{MemoryReports: true})
	})
	t.Run("Cluster", func(t *testing.T) {
		url := cluster(t).address(0)
		c, err := natsjs.Connect(natsjs.ConnectConfig{URL: url, AckTimeout: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		contract(t, c, url, natsadmin.Options{Replicas: 3})
	})
}

// contract runs the suite on a broker at url; operator provisions.
func contract(t *testing.T, operator *natsjs.Conn, url string, o natsadmin.Options) {
	var tasks atomic.Int64
	o.Helper, o.AckWait, o.MaxReportBytes, o.MaxPerSubject = true, testAckWait, 4<<20, 2200
	streamtest.Run(t, func(t *testing.T) streamtest.Broker {
		p := newProxy(t, url)
		t.Cleanup(p.close)
		c, err := natsjs.Connect(natsjs.ConnectConfig{URL: p.url(), AckTimeout: 10 * time.Second, Reconnect: soon})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return streamtest.Broker{
			Records: c, ReportWriter: c, Places: c, Exchange: c, Retention: natsadmin.Records{Conn: operator}, Limits: c.Limits(), Settle: testAckWait +
				testAckWait/2, MaxReportBytes: int(o.MaxReportBytes), MaxPerSubject: int(o.MaxPerSubject),
			Task: func(t *testing.T) stream.Task {
				task := stream.Task(fmt.Sprintf("task-%d", tasks.Add(1)))
				provision(t, operator, task, o)
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

// put puts until nothing is unknown.
func put(t *testing.T, c *natsjs.Conn, subject, data string) stream.PutResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		r, err := c.PutOnce(ctx, subject, []byte(data))
		if err == nil {
			return r
		}
		if ctx.Err() != nil || errors.Is(err, stream.ErrRefused) {
			t.Fatal(err)
		}
	}
}
