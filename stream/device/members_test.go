package device_test

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A dawdler has its reports stored at once, and gets some of the replies late.
type dawdler struct {
	stream.Transport
	calls atomic.Int64
	wait  func(call int64) time.Duration // calls count from 1
}

func (d *dawdler) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := d.Transport.Publish(ctx, reports)
	time.Sleep(d.wait(d.calls.Add(1)))
	return acks, err
}

// A joinOrder is a spy that notes in which order events join.
type joinOrder struct {
	*spy
	joined map[stream.Round][]participation.Key // by round
}

func (r *joinOrder) Write(c participation.Change) error {
	for _, p := range c.Events {
		if p.State == participation.Charged && !slices.Contains(r.joined[p.Draw.Round], p.Key) {
			r.joined[p.Draw.Round] = append(r.joined[p.Draw.Round], p.Key)
		}
	}
	return r.spy.Write(c)
}

// TestMembersJoinInOneOrder: some members get their outcome of a round late. The others wait a moment for them, and all
// join the next one in the order of their keys, however the broker's answers fall.
func TestMembersJoinInOneOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const users, rounds = 200, 4 // more than travel in one publish
		w := newWorld(t, plan{rounds: 3, cohort: users, deadline: time.Minute})
		w.replan(asked(users, rounds, 0))
		s := &joinOrder{newSpy(t, participation.NewMemoryStore()), map[stream.Round][]participation.Key{}}
		c := w.dear(s)
		c.Transport = &dawdler{Transport: c.Transport,
			wait: func(call int64) time.Duration { return time.Duration(call%3) * device.DefaultPoll / 4 }}
		w.play(t.Context(), func(ctx context.Context) {
			sum, err := w.client(c).Run(ctx, rows(users, false))
			must(t, err)
			if sum.Counted != users {
				t.Errorf("%+v", sum)
			}
		})
		s.audit(w)
		for r := stream.Round(2); r <= rounds; r++ {
			if keys := s.joined[r]; len(keys) != users ||
				!slices.IsSortedFunc(keys, func(a, b participation.Key) int { return bytes.Compare(a[:], b[:]) }) {
				t.Errorf("round %d: %d users, or another order", r, len(keys))
			}
		}
	})
}

// TestPlacesOfMembers: members who have no outcome of the round before until the others have had their time keep their
// places, and a late comer has none.
func TestPlacesOfMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const users, rounds = 10, 3
		w := newWorld(t, plan{rounds: 3, cohort: users, deadline: time.Minute})
		w.replan(asked(users, rounds, 0))
		s := newSpy(t, participation.NewMemoryStore())
		c := w.dear(s)
		c.Timeout = 50 * time.Second
		late := stream.ReserveAfter(time.Minute) + 10*time.Second
		c.Transport = &dawdler{Transport: c.Transport, wait: func(call int64) time.Duration {
			if call == 1 {
				return late
			}
			return 0
		}}
		w.play(t.Context(), func(ctx context.Context) {
			sum, err := w.client(c).Run(ctx, rows(users+3, false))
			must(t, err)
			if sum.Counted != users || sum.Uncounted != 3 {
				t.Errorf("%+v, want the first %d counted", sum, users)
			}
		})
		s.audit(w)
		if n := s.answered(); len(n) != 1 || n[rounds] != users {
			t.Errorf("events by rounds answered: %v, want %d in all %d", n, users, rounds)
		}
	})
}

// TestReportsOfManyRounds: the policy's max_reports allows one report more for each further round, so a long phase
// does not use it up. What it allows besides is for further attempts, whichever round they are at.
func TestReportsOfManyRounds(t *testing.T) {
	for most := uint32(1); most <= 3; most++ {
		synctest.Test(t, func(t *testing.T) {
			const rounds = 5
			w := newWorld(t, plan{rounds: 3, cohort: 2})
			w.replan(asked(2, rounds, 0))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			c := w.dear(newSpy(t, participation.NewMemoryStore()))
			c.Policy.MaxReports = &most
			cl := w.client(c)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, err := cl.Publish(ctx, participation.EventKey("a"), example(1))
				must(t, err)
			}()
			left := int(most) - 1
			for r := stream.Round(1); r <= rounds; r++ {
				hash := w.announce(ctx, r)
				w.open(ctx, r, 1, hash)
				time.Sleep(time.Minute)
				want, attempt := 0, stream.Attempt(1)
				if r >= 3 { // opened again
					attempt++
					w.open(ctx, r, attempt, hash)
					time.Sleep(time.Minute)
					want = min(left, 1)
					left -= want
				}
				if once, again := w.reports(r, 1), w.reports(r, 2); once != 1 || again != want {
					t.Errorf("max_reports %d, round %d: %d reports, and %d to another attempt; want 1 and %d", most, r, once, again,
						want)
				}
				w.close(ctx, participation.Closed{Round: r, Attempt: nth(attempt), Manifest: hash, Cutoff: 1 << 40})
				time.Sleep(time.Minute)
			}
			w.end(ctx, rounds)
			<-done
			must(t, cl.Close())
		})
	}
}

// TestMembersDrawNoLots: a later round of a phase is announced with a share because others wait too. Its members, whom
// it was made for, join at once.
func TestMembersDrawNoLots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 3, cohort: 2})
		w.replan(asked(2, 3, 0))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		cl := w.client(w.dear(newSpy(t, participation.NewMemoryStore())))
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err := cl.Publish(ctx, participation.EventKey("a"), example(1))
			must(t, err)
		}()
		for r := stream.Round(1); r <= 2; r++ {
			hash := w.announce(ctx, r)
			open := w.openMessage(r, 1, hash)
			open.StartedUnixMs = time.Now().UnixMilli()
			if r == 2 {
				open.JoinProbability = 1 // in 2^32
			}
			w.put(ctx, w.name.Open(r, 1), w.stage, open)
			time.Sleep(10 * time.Second)
			if n := w.reports(r, 1); n != 1 {
				t.Errorf("round %d: %d reports, want 1", r, n)
			}
			w.close(ctx, participation.Closed{Round: r, Attempt: nth(1), Manifest: hash, Cutoff: 1 << 40})
			time.Sleep(10 * time.Second)
		}
		w.end(ctx, 2)
		<-done
		must(t, cl.Close())
	})
}

// TestReserveIsBounded: a gateway that comes late to a phase does not read all that it could offer; when the members
// have had their time, as many of its users join as the round takes.
func TestReserveIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const users, offered = 10, 3000
		w := newWorld(t, plan{rounds: 3, cohort: users})
		w.replan(asked(users, 3, 0))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s := newSpy(t, participation.NewMemoryStore())
		var pulled atomic.Int64
		done := make(chan struct{})
		w.announce(ctx, 1)
		open := w.openMessage(2, 1, w.announce(ctx, 2))
		open.StartedUnixMs = time.Now().UnixMilli()
		w.put(ctx, w.name.Open(2, 1), w.stage, open)
		go func() {
			defer close(done)
			_, _ = w.client(w.dear(s)).Run(ctx, func(yield func(row, error) bool) {
				for r, err := range rows(offered, false) {
					if pulled.Add(1); !yield(r, err) {
						return
					}
				}
			})
		}()
		joined := func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.draws)
		}
		wait := stream.ReserveAfter(0)
		time.Sleep(wait / 2)
		if n := pulled.Load(); n < users || n > offered/3 || joined() != 0 {
			t.Errorf("%d rows were read, %d joined, before the members had their time", n, joined())
		}
		time.Sleep(wait)
		if n := pulled.Load(); n > offered/3 || joined() != users {
			t.Errorf("%d rows were read, %d joined; want %d", n, joined(), users)
		}
		stop()
		<-done
	})
}

// TestOutcomeWhenThePhaseIsOver: who missed the last round of the phase waits for nothing when the next phase begins,
// though that one takes nobody yet; and who took part only in the last round gets its outcome at once.
func TestOutcomeWhenThePhaseIsOver(t *testing.T) {
	for _, last := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 3, cohort: 2})
			w.replan(asked(2, 3, 0), once(2, 2))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			cl := w.client(w.dear(newSpy(t, participation.NewMemoryStore())))
			outcome := make(chan device.Outcome, 1)
			publish := func() {
				o, err := cl.Publish(ctx, participation.EventKey("a"), example(1))
				must(t, err)
				outcome <- o
			}
			told := func(when string, want bool) {
				t.Helper()
				time.Sleep(time.Minute)
				select {
				case o := <-outcome:
					if round := map[bool]stream.Round{false: 2, true: 3}[last]; !want || o.State != participation.Counted ||
						o.Round != round {
						t.Errorf("%s: told %v", when, o)
					}
				default:
					if want {
						t.Errorf("%s: told nothing", when)
					}
				}
			}
			if !last {
				go publish()
			}
			for r := stream.Round(1); r <= 3; r++ {
				hash := w.announce(ctx, r)
				if r == 3 && last {
					go publish() // and joins without waiting for members, because the round is open for long
				}
				if r < 3 || last { // of the other ones the device receives no attempt
					w.open(ctx, r, 1, hash)
					time.Sleep(time.Minute)
					w.close(ctx, participation.Closed{Round: r, Attempt: nth(1), Manifest: hash, Cutoff: 1 << 40})
				}
				told("after the last round", r == 3 && last)
			}
			w.announce(ctx, 4)
			told("when the next phase begins", !last)
			must(t, cl.Close())
		})
	}
}
