package device_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestNextAttempt: the next attempt has the same counts under another id, in another sharing, whether or not the message
// to the first one was answered.
func TestNextAttempt(t *testing.T) {
	for _, answered := range []bool{true, false} {
		alone(t, plan{}, func(l *lone) {
			l.broker.Inject(func(op memory.Op, subject string) memory.Fault {
				if op == memory.Publish && subject == l.name.Report(1, 1) && !answered {
					return memory.LostAck
				}
				return memory.None
			})
			p, q := l.opens(1), l.opens(2)
			one, two := l.sent(1), l.sent(2)
			if len(one) != 1 || len(two) != 1 {
				t.Fatalf("%d and %d messages, want 1 each", len(one), len(two))
			}
			if bytes.Equal(one[0].Ids[0], two[0].Ids[0]) {
				t.Error("one id in two attempts")
			}
			checkApart(t, p, q, one[0], two[0])
			q.close(l.ctx, everything)
			l.told(participation.Counted)
			l.paid(1)
		})
	}
}

// checkApart insists that two messages have no share in common.
func checkApart(t *testing.T, p, q *pair, one, two *wire.Report) {
	t.Helper()
	leader, helper := p.shares(one)
	leader2, helper2 := q.shares(two)
	for what, pair := range map[string][2][]byte{"leader's share": {leader, leader2}, "helper's share": {helper, helper2},
		"public share": {one.PublicShares[0], two.PublicShares[0]}} {
		if bytes.Equal(pair[0], pair[1]) {
			t.Errorf("two sharings have one %s", what)
		}
		for at := 0; at+16 <= min(len(pair[0]), len(pair[1])); at += 16 {
			if bytes.Equal(pair[0][at:at+16], pair[1][at:at+16]) {
				t.Errorf("two sharings have one element of the %s", what)
			}
		}
	}
}

// TestAgainInOneAttempt: a process that comes back after its publish, answered or not, sends the same counts under the
// same id, so that the report is counted once; a retry of one process is the same message.
func TestAgainInOneAttempt(t *testing.T) {
	for _, restart := range []bool{false, true} {
		alone(t, plan{}, func(l *lone) {
			var mu sync.Mutex
			lost := 1
			l.broker.Inject(func(op memory.Op, _ string) memory.Fault {
				mu.Lock()
				defer mu.Unlock()
				if op == memory.Publish && lost > 0 {
					lost--
					return memory.LostAck
				}
				return memory.None
			})
			var bytesSent [][]byte
			watch := publishes{l.config.Transport, func(out []stream.Outgoing) {
				for _, o := range out {
					bytesSent = append(bytesSent, bytes.Clone(o.Data))
				}
			}}
			must(t, l.device.Close())
			l.config.Transport = watch
			l.begins()
			p := l.pair(1, 1, l.hash, nil)
			p.putOpen(l.ctx)
			p.putJoin(l.ctx)
			l.waits(500 * time.Millisecond)
			if restart {
				l.restarts()
			}
			l.waits(time.Minute)
			if len(bytesSent) != 2 {
				t.Fatalf("restart %t: %d messages, want 2", restart, len(bytesSent))
			}
			var one, two wire.Report
			must(t, stream.Unmarshal(bytesSent[0], &one))
			must(t, stream.Unmarshal(bytesSent[1], &two))
			if !bytes.Equal(one.Ids[0], two.Ids[0]) {
				t.Errorf("restart %t: another id in the same attempt", restart)
			}
			if same := bytes.Equal(bytesSent[0], bytesSent[1]); same == restart {
				t.Errorf("restart %t: the same bytes %t", restart, same)
			}
			if restart {
				leader, _ := p.shares(&one)
				again, _ := p.shares(&two)
				if bytes.Equal(leader, again) {
					t.Error("shares were stored")
				}
			}
			p.close(l.ctx, everything)
			l.told(participation.Counted)
			l.paid(1)
		})
	}
}

// publishes shows what is published.
type publishes struct {
	stream.Transport
	see func([]stream.Outgoing)
}

func (p publishes) Publish(ctx context.Context, out []stream.Outgoing) ([]stream.Ack, error) {
	p.see(out)
	return p.Transport.Publish(ctx, out)
}

// TestDiesBetweenDrawAndSend: a process that dies at the write before its publish, written or not, draws no second time
// in the round.
func TestDiesBetweenDrawAndSend(t *testing.T) {
	for _, lost := range []bool{false, true} {
		alone(t, plan{}, func(l *lone) {
			l.spy.mu.Lock()
			l.spy.failAt, l.spy.lost = l.spy.writes+2, lost // the first one pins the store
			l.spy.mu.Unlock()
			p := l.opens(1)
			if err := l.device.Close(); !errors.Is(err, errDied) {
				t.Fatalf("%v, want a store that died", err)
			}
			if n := len(l.sent(1)); n != 0 {
				t.Fatalf("%d messages before the store has the draw", n)
			}
			l.spy.mu.Lock()
			l.spy.failAt = 0
			l.spy.mu.Unlock()
			l.begins()
			l.waits(time.Minute)
			if n := len(l.sent(1)); n != 1 {
				t.Errorf("lost %t: %d messages, want 1", lost, n)
			}
			l.paid(1)
			p.close(l.ctx, everything)
			l.told(participation.Counted)
		})
	}
}

// TestCopiedMachine: a machine that is copied, with the state of its generators, shows no sharing twice: under another
// attempt of the same number, and of the next, all shares are others.
func TestCopiedMachine(t *testing.T) {
	alone(t, plan{}, func(l *lone) {
		must(t, l.device.Close())
		l.device = nil
		store := participation.NewMemoryStore()
		life := func(a stream.Attempt, change func(*world)) (*pair, *wire.Report) {
			w := *l.world
			var err error
			w.broker, err = memory.New(memory.Config{Keep: true})
			must(t, err)
			w.announce(l.ctx, 1)
			if change != nil {
				change(&w)
			}
			copied := participation.NewMemoryStore()
			for r, err := range store.Charged() {
				must(t, err)
				must(t, copied.Write(participation.Change{Events: []participation.Record{r}}))
			}
			c := w.dear(copied)
			c.Source = ""
			dev := w.client(c)
			device.SetFresh(dev, 7)
			device.SetChance(dev, 7)
			must(t, device.Offer(l.ctx, dev, participation.EventKey("a"), func(device.Outcome) {}))
			device.Begin(dev)
			p := w.pair(1, a, l.hash, nil)
			p.putOpen(l.ctx)
			p.putJoin(l.ctx)
			l.waits(20 * time.Second)
			must(t, dev.Close())
			for r, err := range copied.Charged() {
				must(t, err)
				must(t, store.Write(participation.Change{Events: []participation.Record{r}}))
			}
			for _, m := range w.broker.Dump() {
				if m.Stream == stream.Reports {
					var r wire.Report
					must(t, stream.Unmarshal(m.Data, &r))
					return p, &r
				}
			}
			t.Fatal("nothing was sent")
			return nil, nil
		}
		p, one := life(1, nil)
		q, two := life(1, nil)
		r, three := life(2, nil)
		checkApart(t, p, q, one, two)
		checkApart(t, q, r, two, three)
	})
}
