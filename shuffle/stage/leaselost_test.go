package stage

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// TestLeaseIsLost: the broker loses the lease's record while one process works and another waits. Who works goes on
// with its attempt, whatever the broker forgot; where the broker remembers a process that died long ago, or never was,
// its lease is waited for.
func TestLeaseIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		lose    func(w *world, empty, old func())
		dropped int // attempts
	}{
		"removed and made again": {func(_ *world, empty, _ func()) { empty() }, 0},
		"rolled back":            {func(_ *world, _, old func()) { old() }, 0},
		"replaced by that of a process that died": {func(w *world, empty, _ func()) {
			empty()
			other := newLease("", randomID(), 10*time.Second, time.Second)
			if _, err := w.broker.Swap(t.Context(), w.name.Lease(), 0, other.record(10*time.Second)); err != nil {
				t.Error(err)
			}
		}, 1},
		"replaced by garbage": {func(w *world, empty, _ func()) {
			empty()
			if _, err := w.broker.Swap(t.Context(), w.name.Lease(), 0, []byte("garbage")); err != nil {
				t.Error(err)
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, plan{cohort: 4})
				w.announce(t.Context())
				empty := w.broker.Save(w.name, stream.Leases)
				dropped := 0
				c1, c2 := w.config(), w.config()
				c1.Observer.Dropped = func(stream.Round, stream.Attempt) { dropped++ }
				first, stop1 := w.start(c1)
				time.Sleep(5 * time.Second)
				second, stop2 := w.start(c2)
				old := w.broker.Save(w.name, stream.Leases)
				time.Sleep(30 * time.Second)
				c.lose(w, empty, old)
				time.Sleep(c1.LeaseTTL + 2*c1.Poll)
				time.Sleep(time.Duration(c.dropped) * c1.LeaseTTL) // until the lease there has expired
				if a, b := first.Status().Lease, second.Status().Lease; a == b || c.dropped == 0 && b {
					t.Errorf("the first holds the lease: %t, the second: %t", a, b)
				}
				if dropped != c.dropped {
					t.Errorf("%d attempts were dropped, want %d", dropped, c.dropped)
				}
				ctx, end := context.WithTimeout(t.Context(), c1.LeaseTTL)
				defer end()
				if in := w.invited(ctx, 1, stream.Attempt(c.dropped)); in != nil {
					w.answer(t.Context(), in, w.users(1))
				}
				time.Sleep(c1.LeaseTTL)
				if b, _ := w.batch(1); b == nil || b.Users != 4 {
					t.Errorf("batch %v, want 4 users", b)
				}
				_, _ = stop1(), stop2()
			})
		})
	}
}

// TestLeaseIsFoundAgain checks that, after a broker did anything to the record, with answers lost, replicas that lag,
// and processes that died, one of the living holds the lease within two lease times of the broker's recovery, and
// keeps it.
func TestLeaseIsFoundAgain(t *testing.T) {
	const ttl, poll, tick = 10 * time.Second, time.Second, 250 * time.Millisecond
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1e9, 0)
		var line []*stream.Message // all records written; the last one is current
		all := make([]*lease, 3)
		for i := range all {
			all[i] = newLease("lease", [16]byte{byte(i + 1)}, ttl, poll)
		}
		at := func(back int) *stream.Message {
			if len(line) <= back {
				return nil
			}
			return line[len(line)-1-back]
		}
		act := func(l *lease, fault string) {
			look, write := l.next(now)
			switch {
			case look && fault == "lag":
				l.saw(now, at(1))
			case look && fault != "answer lost":
				l.saw(now, at(0))
			case write:
				last := uint64(0)
				if m := at(0); m != nil {
					last = m.Sequence
				}
				if stored := last == l.expects; stored {
					line = append(line, &stream.Message{Sequence: last + 1, Data: l.record(ttl)})
					if fault != "answer lost" {
						l.wrote(now, last+1)
						return
					}
				}
				fallthrough
			case look:
				l.failed(now)
			}
		}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond)
			if rapid.IntRange(0, 20).Draw(t, "gone") == 0 {
				line = line[:rapid.IntRange(0, len(line)).Draw(t, "kept")]
			}
			act(rapid.SampledFrom(all).Draw(t, "who"), rapid.SampledFrom([]string{"", "", "answer lost", "lag"}).Draw(t,
				"fault"))
		}
		living := all[:rapid.IntRange(1, 3).Draw(t, "living")]
		for since := time.Duration(0); since < 5*ttl; since += tick {
			now = now.Add(tick)
			holders := 0
			for _, l := range living {
				if act(l, ""); l.holds(now) {
					holders++
				}
			}
			if since > 2*ttl+4*poll && holders != 1 {
				t.Fatalf("%v after the last fault %d processes hold the lease", since, holders)
			}
		}
	})
}

// TestLeaseIsLostWithItsHolder checks that a standby finds out by itself, in a lease's time.
func TestLeaseIsLostWithItsHolder(t *testing.T) {
	for _, rolledBack := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{cohort: 4})
			w.announce(t.Context())
			lose := w.broker.Save(w.name, stream.Leases)
			dead, sequence := newLease("", randomID(), 10*time.Second, time.Second), uint64(0)
			for range 5 {
				var err error
				if sequence, err = w.broker.Swap(t.Context(), w.name.Lease(), sequence, dead.record(10*time.Second)); err != nil {
					t.Error(err)
				}
				if rolledBack && sequence == 2 {
					lose = w.broker.Save(w.name, stream.Leases)
				}
			}
			s, stop := w.start(w.config())
			time.Sleep(time.Second)
			lose()
			time.Sleep(13 * time.Second)
			if !s.Status().Lease {
				t.Errorf("rolled back %t: a lease's time later the one that stood by does not work: %+v", rolledBack, s.Status())
			}
			_ = stop()
		})
	}
}

// TestLeasesAreProvisionedAgain: the same on a real broker, whose stream is deleted under a process that works and one
// that waits.
func TestLeasesAreProvisionedAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, err := embedded.Start(embedded.Config{StoreDir: t.TempDir()})
	check(t, err)
	defer server.Shutdown()
	conn, err := server.Connect(natsjs.ConnectConfig{})
	check(t, err)
	defer conn.Close()
	w := newWorld(t, plan{cohort: 4})
	check(t, natsadmin.Provision(ctx, conn, w.name, natsadmin.Options{}))
	_, err = conn.PutOnce(ctx, w.name.Task(), w.sign(w.learner, w.task))
	check(t, err)
	var stages [2]*Stage
	for i := range stages {
		c := w.config()
		c.Records, c.Poll, c.LeaseTTL, c.Limits = conn, 50*time.Millisecond, 500*time.Millisecond, conn.Limits()
		c.Reports, err = conn.Reader(ctx, w.name)
		check(t, err)
		stages[i] = w.new(c)
		running := make(chan error, 1)
		ctx, stop := context.WithCancel(ctx)
		go func() { running <- stages[i].Run(ctx) }()
		defer func() { stop(); <-running }()
	}
	works := func() bool { return stages[0].Status().Lease != stages[1].Status().Lease }
	until(t, works)
	time.Sleep(time.Second) // some renewals
	check(t, conn.Admin().JetStream().DeleteStream(ctx, w.name.Name(stream.Leases)))
	until(t, func() bool { return !stages[0].Status().Lease && !stages[1].Status().Lease })
	check(t, natsadmin.Provision(ctx, conn, w.name, natsadmin.Options{}))
	until(t, works)
}

// until waits for what must come within ten seconds.
func until(t *testing.T, what func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !what(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come")
		}
	}
}
