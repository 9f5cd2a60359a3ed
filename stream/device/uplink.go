package device

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A window bounds the number of events that are on their way to the broker at a time. It grows while replies come
// quickly, and halves when a reply takes long: a report sent to a broker that is behind may come too late for its
// round, and an event without a reply when the round closes stays in doubt for ever. The window depends on the broker
// alone.
type window struct{ now, least, most int }

// A reply within quickAnswer lets the window grow by its events; one after slowAnswer halves it.
const (
	quickAnswer = time.Second
	slowAnswer  = 2 * time.Second
)

// newWindow returns a window of two chunks.
func newWindow(chunk, most int) window {
	return window{now: min(2*chunk, most), least: min(chunk, most), most: most}
}

// answered takes the reply about some events, and the time that it took.
func (w *window) answered(events int, took time.Duration) {
	switch {
	case took <= quickAnswer:
		w.now = min(w.now+events, w.most)
	case took > slowAnswer:
		w.now = max(w.now/2, w.least)
	}
}

// An uplink decides how much may be sent to the broker now, from the broker's earlier replies. It sends nothing itself.
type uplink struct {
	log    *slog.Logger
	poll   time.Duration // Settings.Poll
	bundle int           // Settings.Bundle

	sending    int // events being published
	window     window
	refusals   refusals
	publishing stream.Trouble
	unasked    stream.Trouble // the broker refuses requests for places
	trouble    string         // why the broker took no report lately; empty: it did
	troubled   time.Time      // since when
}

func newUplink(c *Settings, chunk int, lots chance) *uplink {
	return &uplink{log: c.Logger, poll: c.Poll, bundle: c.Bundle, window: newWindow(chunk, c.MaxInFlight),
		refusals: refusals{chance: lots}}
}

// room returns the number of further events that may be published now.
func (u *uplink) room() int { return u.window.now - u.sending }

// most returns how many of n events may join an attempt now, while owed messages are charged and without a reply. While
// the broker refuses reports it returns the events of one message, and only if no charged message could be tried
// instead.
func (u *uplink) most(n, owed int, attempt participation.Attempt, now time.Time) int {
	if u.refusals.wait == 0 {
		return n
	}
	if u.sending > 0 || owed > 0 {
		return 0
	}
	return min(n, u.refusals.tries(1, attempt, now)*u.bundle)
}

// answered takes the reply to a delivery, and logs the state of the broker: it refuses reports, does not reply, or
// takes reports again, which only a stored report shows.
func (u *uplink) answered(d delivery, now time.Time) {
	u.window.answered(d.events(), now.Sub(d.due))
	refused, taken := u.refusals.told(d, u.poll, now)
	u.refusals.count += uint64(refused)
	switch cause := d.cause(); {
	case errors.Is(d.err, context.Canceled):
	case refused > 0:
		u.noteTrouble(now, "the broker refuses reports: "+cause)
		if u.refusals.trouble.Tell(now, nil) {
			u.log.Warn("the broker refuses reports. Trying again; nobody else joins until it takes one",
				"round", d.round.number, "messages", refused, "taken", taken, "cause", cause)
		}
	case d.err != nil:
		u.noteTrouble(now, "reports cannot be sent: "+d.err.Error())
		if u.publishing.Tell(now, d.err) {
			u.log.Warn("publish failed; trying again", "messages", len(d.bundles), "err", d.err)
		}
	case taken < len(d.acks):
		u.noteTrouble(now, "the broker does not answer reports: "+cause)
		if u.publishing.Tell(now, nil) {
			u.log.Warn("the broker does not answer reports; trying again", "round", d.round.number, "messages",
				len(d.acks)-taken, "cause", cause)
		}
	case taken > 0:
		u.trouble, u.troubled = "", time.Time{}
		if u.publishing.Over() {
			u.log.Info("publishing works again")
		}
		if u.refusals.trouble.Over() {
			u.log.Info("the broker takes reports again")
		}
	}
}

// noteTrouble notes why reports are not taken, and since when.
func (u *uplink) noteTrouble(now time.Time, trouble string) {
	if u.trouble = trouble; u.troubled.IsZero() {
		u.troubled = now
	}
}
