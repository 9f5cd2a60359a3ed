package natsjs

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

// skewed is how far a clock may be off before somebody notices: certificates begin and end, an Open says when its deadline
// started, and a device's ledger has windows of time.
const skewed = 2 * time.Second

const clockMatters = "set the clocks of both with NTP: deadlines, certificates and the windows of devices' ledgers go by them"

// clock compares our clock with the server's. Where the server says its time, the answer was made between request and
// arrival, so that the difference is known to half of that. Where these credentials may not ask, the newest record is no
// older than the server's clock, which shows a clock of ours that is behind, and no other.
func (e *examination) clock(ctx context.Context) {
	now := e.expect.Clock
	if now == nil {
		now = time.Now
	}
	sent := now()
	info, err := e.streamInfo(ctx, e.task.Name(stream.Rounds))
	took := now().Sub(sent)
	if err == nil && !info.TimeStamp.IsZero() {
		uncertain := (took + 1) / 2
		ahead := sent.Add(took / 2).Sub(info.TimeStamp)
		// A client of a cluster asks through its own server; the one that leads the stream answers.
		if ahead.Abs()-uncertain > skewed {
			e.find("clock", Warning, "ours is %v ahead of the server's, give or take %v: %s", ahead.Round(time.Millisecond), uncertain.Round(time.Millisecond), clockMatters)
			return
		}
		e.find("clock", OK, "ours is within %v of the server's", (ahead.Abs() + uncertain).Round(time.Millisecond))
		return
	}
	stored, ok := e.storedAt(ctx)
	if !ok {
		return
	}
	if behind := stored.Sub(now()); behind > skewed {
		e.find("clock", Warning, "the newest record was stored %v from now: our clock is behind: %s", behind.Round(time.Millisecond), clockMatters)
		return
	}
	e.find("clock", OK, "not behind the newest record's; only an administrator's credentials see the server's time")
}

// storedAt is when the newest of the records that every role may read was stored, by the server's clock.
func (e *examination) storedAt(ctx context.Context) (time.Time, bool) {
	request := directGet + e.task.Name(stream.Rounds) + "." + e.task.Rounds()
	wait, cancel := e.ask(ctx, request)
	defer cancel()
	answer, err := e.nc.RequestWithContext(wait, request, nil)
	if err != nil {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, answer.Header.Get(jetstream.TimeStampHeaer))
	return at, err == nil
}
