package stage

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
)

// TestLeaseIsHeldByOneAtMost: any number of processes on one compare-and-set record, with delays, lost answers and
// lagging reads. At no time do two of them hold the lease.
func TestLeaseIsHeldByOneAtMost(t *testing.T) {
	const ttl, poll = 10 * time.Second, time.Second
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1e9, 0)
		var standing *stream.Message
		var old *stream.Message
		all := make([]*lease, 3)
		for i := range all {
			all[i] = newLease("lease", [16]byte{byte(i + 1)}, ttl, poll)
		}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond)
			l := rapid.SampledFrom(all).Draw(t, "who")
			fault := rapid.SampledFrom([]string{"", "", "", "lost", "answer lost", "lag"}).Draw(t, "fault")
			look, write := l.next(now)
			switch {
			case look && fault == "lost":
				l.failed(now)
			case look && fault == "lag":
				l.saw(now, old)
			case look:
				l.saw(now, standing)
			case write:
				sent := now
				now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "delay")) * time.Millisecond)
				var last uint64
				if standing != nil {
					last = standing.Sequence
				}
				stored := fault != "lost" && last == l.expects
				if stored {
					old = standing
					standing = &stream.Message{Sequence: last + 1, Data: l.record(l.ttl)}
				}
				if stored && fault != "answer lost" {
					l.wrote(sent, last+1)
				} else {
					l.failed(now)
				}
			}
			holders := 0
			for _, l := range all {
				if l.holds(now) {
					holders++
				}
			}
			if holders > 1 {
				t.Fatalf("%d processes hold the lease", holders)
			}
		}
	})
}

// TestLeaseRecord: what a waiting process makes of the current record.
func TestLeaseRecord(t *testing.T) {
	const ttl, poll = 10 * time.Second, time.Second
	now := time.Unix(1e9, 0)
	other := newLease("lease", [16]byte{9}, 30*time.Second, poll)
	for name, c := range map[string]struct {
		data []byte
		wait time.Duration
	}{
		"a living holder":          {other.record(30 * time.Second), 30 * time.Second},
		"a holder that gave it up": {other.record(0), 0},
		"garbage":                  {[]byte("garbage"), ttl},
		"an unknown version":       {append([]byte{2}, other.record(time.Hour)[1:]...), ttl},
		"an absurd time":           {other.record(1000 * time.Hour), MaxLeaseTTL},
	} {
		l := newLease("lease", [16]byte{1}, ttl, poll)
		l.saw(now, &stream.Message{Sequence: 7, Data: c.data})
		at := now
		for ; at.Before(now.Add(time.Hour)); at = at.Add(500 * time.Millisecond) {
			look, write := l.next(at)
			if write {
				break
			}
			if look {
				l.saw(at, &stream.Message{Sequence: 7, Data: c.data})
			}
		}
		if got := at.Sub(now); got < c.wait || got > c.wait+poll {
			t.Errorf("%s: takes over after %v, want %v", name, got, c.wait)
		}
	}
}

// TestLeaseIgnoresALaggingRead: an old record does not cost the holder its lease; a newer one of somebody else does.
func TestLeaseIgnoresALaggingRead(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := newLease("lease", [16]byte{1}, 10*time.Second, time.Second)
	other := newLease("lease", [16]byte{2}, 10*time.Second, time.Second)
	l.wrote(now, 5)
	l.failed(now)
	l.saw(now, &stream.Message{Sequence: 4, Data: other.record(10 * time.Second)})
	if !l.holds(now) || l.known {
		t.Error("a lagging read was believed")
	}
	l.saw(now, nil) // where nothing is, the broker takes a write that expects nothing, and refuses it where something is
	if _, write := l.next(now); !l.holds(now) || !write || l.expects != 0 {
		t.Error("a lagging not-found was believed, or not put to the test")
	}
	l.failed(now)
	l.saw(now, &stream.Message{Sequence: 4, Data: other.record(10 * time.Second)})
	if !l.holds(now) || l.known {
		t.Error("a lagging read was believed after a refused write")
	}
	l.saw(now, &stream.Message{Sequence: 6, Data: other.record(20 * time.Second)})
	if l.holds(now) || l.patience() != 40*time.Second {
		t.Errorf("holds %t, patience %v", l.holds(now), l.patience())
	}
}
