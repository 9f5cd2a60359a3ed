package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// A Broker configures the connection to a broker.
type Broker struct {
	natsjs.ConnectConfig
	Wait time.Duration // how long a broker that does not answer yet is waited for
}

// Connect connects under a name, and tries for Wait if no broker answers yet: processes that are started together
// need not be started in order. Later losses of the connection are natsjs's business.
func (b Broker) Connect(ctx context.Context, name string, log *slog.Logger) (*natsjs.Conn, error) {
	b.Name, b.Log = name, log
	wait, cancel := context.WithTimeout(ctx, b.Wait)
	defer cancel()
	conn, err := natsjs.ConnectWait(wait, b.ConnectConfig)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return conn, err
}

// Observed returns what a role's metrics show of its connection. A certificate on disk that cannot be read is left
// out: the next connection reports the error.
func Observed(conn *natsjs.Conn, clock *Clock) obs.Broker {
	return obs.Broker{Connected: conn.Connected, Clock: clock.Ahead, Certificates: func() (time.Time,
		map[string]time.Time) {
		ends, _ := conn.Certificates().Expiry()
		return ends.Own, conn.Certificates().Known()
	}}
}

// Lease is the lease of a stage unless it is configured otherwise.
const Lease = stage.DefaultLeaseTTL

// Ready returns a readiness check: it passes if there is a connection, and if calls of the broker have not failed for
// longer than a lease, which is as long as a task may go without them. trouble returns the cause of failing calls and
// since when they fail; the cause is empty while they succeed.
func Ready(connected func() bool, lease time.Duration, trouble func() (cause string, since time.Time)) obs.Check {
	return func() error {
		if err := Connected(connected)(); err != nil {
			return err
		}
		if cause, since := trouble(); cause != "" && time.Since(since) > lease {
			return fmt.Errorf("for %v: %s", time.Since(since).Round(time.Second), cause)
		}
		return nil
	}
}

// Connected returns a readiness check that passes if there is a connection.
func Connected(connected func() bool) obs.Check {
	return func() error {
		if !connected() {
			return errors.New("no connection to the broker")
		}
		return nil
	}
}

// Provision creates the streams of a task, sized for its reports, or finds them where our credentials may not create
// any; it refuses a task whose messages the broker would not take. With MemoryReports the broker keeps sealed reports
// in its memory: no write to disk for each, but reports that nobody opened yet go with the broker's process, and their
// users with them, because they count themselves as having taken part. It says whether our credentials are an
// administrator's.
func Provision(ctx context.Context, conn *natsjs.Conn, name stream.Task, s Streams) (administers bool, err error) {
	sizes, err := manifest.SizesOf(s.Body, stage.ReasonNames())
	if err != nil {
		return false, err
	}
	if err := sizes.Fit(conn.Limits()); err != nil {
		return false, err
	}
	err = natsadmin.Provision(ctx, conn, name, s.options(sizes))
	if errors.Is(err, natsjs.ErrDenied) { // as it should be: an administrator has created them
		return false, natsadmin.Present(ctx, conn, name)
	}
	return err == nil, err
}

// Options returns how a task's streams are made for messages of these sizes.
func Options(sizes manifest.Sizes, replicas int, memoryReports bool, reportBytes int64) natsadmin.Options {
	return natsadmin.Options{Replicas: replicas, MaxMsgSize: sizes.Report, LeastMsgSize: sizes.Single,
		MaxPerSubject:  sizes.Waiting,
		MaxReportBytes: reportBytes, MemoryReports: memoryReports, Helper: sizes.Operators, Grants: sizes.Grants}
}

func (s Streams) options(sizes manifest.Sizes) natsadmin.Options {
	return Options(sizes, s.Replicas, s.MemoryReports, s.ReportBytes)
}
