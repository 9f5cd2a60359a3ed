package runadmin

import (
	"context"
	"time"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/wire"
)

const setClocks = "set the clocks of both with NTP: deadlines go by them (docs/how-to/runbook.md, clocks)"

// slowOpen bounds the time from the start of an attempt to the storage of its Open, with the repetitions that a busy
// broker needs.
const slowOpen = 30 * time.Second

// stageClock compares the stage's clock with the broker's by the newest attempt at a round: its Open holds when it
// began by the stage's clock, and the broker stored it a moment later by its own.
func (v *visit) stageClock(ctx context.Context, conn *natsjs.Conn) {
	m, at, err := v.newestOpen(ctx, conn)
	if err != nil || m.Time.IsZero() { // there is none, or it is another role's
		return
	}
	signed, open := &wire.Signed{}, &wire.Open{}
	if stream.Unmarshal(m.Data, signed) != nil || stream.Unmarshal(signed.Body, open) != nil {
		return
	}
	ahead := time.UnixMilli(open.StartedUnixMs).Sub(m.Time)
	switch {
	case ahead > run.ClockOff:
		v.find("stage clock", natsadmin.Warning,
			"the stage's was %v ahead of the broker's, or more, when it opened round %d: %s", ahead.Round(time.Second), at.Round,
			setClocks)
	case -ahead > slowOpen:
		v.find("stage clock", natsadmin.Warning,
			"the stage's was up to %v behind the broker's when it opened round %d, or the broker took so long to store that: %s",
			-ahead.Round(time.Second), at.Round, setClocks)
	default:
		v.find("stage clock", natsadmin.OK, "the stage's agreed with the broker's when it opened round %d", at.Round)
	}
}
