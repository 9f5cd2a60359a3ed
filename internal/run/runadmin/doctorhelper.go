package runadmin

import (
	"context"
	"errors"
	"time"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// newestOpen returns the Open of the newest attempt at the newest round, and the round and attempt that it is of.
func (v *visit) newestOpen(ctx context.Context, conn *natsjs.Conn) (m stream.Message, at stream.Address, err error) {
	newest, err := conn.Latest(ctx, v.Task.Rounds())
	if err != nil {
		return m, at, err
	}
	if at, err = stream.ParseSubject(newest.Subject); err != nil {
		return m, at, err
	}
	if m, err = conn.Latest(ctx, v.Task.Opens(at.Round)); err != nil {
		return m, at, err
	}
	at, err = stream.ParseSubject(m.Subject)
	return m, at, err
}

// helper looks, in a task of two operators, whether the helper has joined the newest attempt: for two leases it may take
// its time. Where these credentials may not see that, it says nothing.
func (v *visit) helper(ctx context.Context, conn *natsjs.Conn, now time.Time) {
	m, at, err := v.newestOpen(ctx, conn)
	if err != nil {
		return
	}
	_, err = conn.Get(ctx, v.Task.Join(at.Round, at.Attempt))
	switch waits := now.Sub(m.Time); {
	case err == nil:
		v.find("helper", natsadmin.OK, "it has joined attempt %d of round %d, the newest", at.Attempt, at.Round)
	case !errors.Is(err, stream.ErrNotFound): // a task of one operator has no such stream, and some roles may not read it
	case m.Time.IsZero() || waits < 2*run.Lease:
		v.find("helper", natsadmin.OK, "attempt %d of round %d was opened a moment ago", at.Attempt, at.Round)
	default:
		v.find("helper", natsadmin.Warning,
			"it has not joined attempt %d of round %d, which was opened %v ago: its process is away, or the broker does not let it "+
				"(docs/how-to/runbook.md, the other operator is away)", at.Attempt, at.Round, waits.Round(time.Second))
	}
}
