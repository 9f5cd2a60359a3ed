package device

import (
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream/wire"
)

// TestAttemptsCountFromTheirJoin: ramp, deadline and places count from the Join, by the earlier of its time and of this
// device's; a helper whose clock is ahead, or behind, moves nobody.
func TestAttemptsCountFromTheirJoin(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	for name, c := range map[string]struct {
		open, join, seen time.Duration // ago
		want             time.Duration
	}{
		"seen at once":                       {time.Minute, time.Second, time.Second, time.Second},
		"a late Join":                        {time.Hour, time.Second, time.Second, time.Second},
		"a device that comes late":           {time.Hour, 10 * time.Minute, time.Second, 10 * time.Minute},
		"a helper whose clock is ahead":      {time.Minute, -time.Hour, 5 * time.Second, 5 * time.Second},
		"a helper whose clock is behind":     {time.Minute, 24 * time.Hour, 5 * time.Second, time.Minute},
		"a device whose clock is behind":     {-time.Hour, -time.Hour, 5 * time.Second, 5 * time.Second},
		"both, of whom the leader is behind": {24 * time.Hour, time.Second, time.Second, time.Second},
	} {
		r := &round{open: &wire.Open{StartedUnixMs: ago(c.open)}, join: &wire.Join{StartedUnixMs: ago(c.join)},
			opened: now.Add(-c.seen)}
		if got := r.elapsed(now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	r := &round{open: &wire.Open{StartedUnixMs: ago(time.Hour)}, opened: now}
	if got := r.elapsed(now); got != time.Hour {
		t.Errorf("an attempt of one operator has been open for %v, want an hour", got)
	}
}
