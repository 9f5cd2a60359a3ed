package device_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A lone is a world of two operators with one device that has one event, and a test that plays both operators.
type lone struct {
	*world
	ctx     context.Context
	spy     *spy
	book    ledger.Ledger
	hash    stream.Hash // of round 1
	config  device.Settings
	device  *device.Device
	outcome chan device.Outcome
	log     logbook
}

// alone runs a test in a bubble, with a device whose event waits for round 1, which is announced.
func alone(t *testing.T, p plan, f func(*lone)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p.trust, p.rounds, p.cohort = accounting.Split, max(p.rounds, 2), max(p.cohort, 4)
		l := &lone{world: newWorld(t, p), ctx: t.Context(), book: memory.NewLedger()}
		l.spy = newSpy(t, participation.NewMemoryStore())
		l.config = l.dear(l.spy)
		l.config.Policy.MaxEpsilon = accounting.MaxEpsilon
		l.config.Ledger, l.config.Logger = l.book, l.log.logger()
		l.hash = l.announce(l.ctx, 1)
		l.begins()
		f(l)
		if l.device != nil {
			must(t, l.device.Close())
		}
		l.spy.audit(l.world)
	})
}

func (l *lone) begins() {
	l.device = l.client(l.config)
	l.outcome = make(chan device.Outcome, 1)
	told := l.outcome
	must(l.t, device.Offer(l.ctx, l.device, participation.EventKey("a"), func(o device.Outcome) { told <- o }))
	device.Begin(l.device)
	l.waits(time.Second)
}

// ends ends the process of the device, and another begins.
func (l *lone) restarts() {
	must(l.t, l.device.Close())
	l.begins()
}

func (l *lone) waits(d time.Duration) { time.Sleep(d); synctest.Wait() }

// opens puts an attempt of both operators, and waits until the device has had time to answer.
func (l *lone) opens(a stream.Attempt) *pair {
	p := l.pair(1, a, l.hash, nil)
	p.putOpen(l.ctx)
	p.putJoin(l.ctx)
	l.waits(10 * time.Second)
	return p
}

// sent returns the messages that were published to an attempt.
func (l *lone) sent(a stream.Attempt) (out []*wire.Report) {
	for _, m := range l.broker.Dump() {
		if m.Subject == l.name.Report(1, a) {
			var r wire.Report
			must(l.t, stream.Unmarshal(m.Data, &r))
			out = append(out, &r)
		}
	}
	return out
}

// paid insists that the event has paid for so many participations.
func (l *lone) paid(want int) {
	l.t.Helper()
	l.spy.mu.Lock()
	drawn := len(l.spy.draws[participation.EventKey("a")])
	l.spy.mu.Unlock()
	charged := 0
	for a, err := range l.book.Accounts() {
		must(l.t, err)
		for _, c := range a.Charges {
			charged += int(c.Standing) + int(c.Open)
		}
	}
	if (want > 0) != (charged > 0) || drawn != want {
		l.t.Errorf("%d draws and %d charged, want %d participations", drawn, charged, want)
	}
}

// told insists on the outcome of the event, soon.
func (l *lone) told(want participation.State) {
	l.t.Helper()
	l.waits(30 * time.Second)
	select {
	case o := <-l.outcome:
		if o.State != want {
			l.t.Errorf("the outcome is %v, want %v", o, want)
		}
	default:
		l.t.Errorf("no outcome was told, want %v", want)
	}
}

// shares opens both parts of a report as the operators of an attempt do.
func (p *pair) shares(r *wire.Report) (leader, helper []byte) {
	p.w.t.Helper()
	c, aad := splitwire.ContextOf(p.x(), p.manifest), split.AssociatedData(splitwire.UsersOf(r))
	leader, err := p.leader.OpenShares(c, seal.Leader, seal.Leader.Sealed(r), aad)
	must(p.w.t, err)
	helper, err = p.helper.OpenShares(c, seal.Helper, seal.Helper.Sealed(r), aad)
	must(p.w.t, err)
	return leader, helper
}

// TestNineAttempts: after the eighth attempt at a round a device waits for the Close. All of them are one report and one
// participation, whichever closes.
func TestNineAttempts(t *testing.T) {
	two := uint32(2)
	for _, c := range []struct {
		most   *uint32 // of the policy
		sends  stream.Attempt
		closes stream.Attempt
		want   participation.State
	}{{nil, 8, 9, participation.Uncounted}, {nil, 8, 8, participation.Counted}, {&two, 2, 9, participation.Uncounted},
		{&two, 2, 1, participation.Counted}} {
		alone(t, plan{}, func(l *lone) {
			must(l.t, l.device.Close())
			one := uint32(1)
			l.config.Policy.MaxAttempts, l.config.Policy.MaxReports = c.most, &one
			l.begins()
			var pairs []*pair
			ids := map[string]bool{}
			for a := stream.Attempt(1); a <= 9; a++ {
				pairs = append(pairs, l.opens(a))
				got := l.sent(a)
				if want := a <= c.sends; (len(got) == 1) != want {
					l.t.Fatalf("%d messages to attempt %d, want %t", len(got), a, want)
				}
				for _, r := range got {
					ids[string(r.Ids[0])] = true
				}
			}
			if len(ids) != int(c.sends) {
				l.t.Errorf("%d ids in %d attempts", len(ids), c.sends)
			}
			select {
			case o := <-l.outcome:
				l.t.Errorf("%v is told before a Close", o)
			default:
			}
			l.paid(1)
			pairs[c.closes-1].close(l.ctx, everything)
			if c.want == participation.Uncounted {
				l.waits(time.Minute)
				l.end(l.ctx, 1)
			}
			l.told(c.want)
			l.paid(1)
			records, err := l.spy.Read([]participation.Key{participation.EventKey("a")})
			must(l.t, err)
			if got := records[0]; got.Reports != 1 || got.Refunds != 0 {
				l.t.Errorf("%d reports, %d refunds: want 1 and none", got.Reports, got.Refunds)
			}
		})
	}
}

// TestUnpairedAttempts: a device waits, and pays nothing, until Open and Join of one attempt are there, whatever else
// is.
func TestUnpairedAttempts(t *testing.T) {
	for name, put := range map[string]func(l *lone){
		"an Open alone": func(l *lone) { l.pair(1, 1, l.hash, nil).putOpen(l.ctx) },
		"a Join alone":  func(l *lone) { l.pair(1, 1, l.hash, nil).putJoin(l.ctx) },
		"a Join of another Open": func(l *lone) {
			l.pair(1, 1, l.hash, nil).putOpen(l.ctx)
			l.pair(1, 1, l.hash, nil).putJoin(l.ctx)
		},
		"a Join of another Open, first": func(l *lone) {
			l.pair(1, 1, l.hash, nil).putJoin(l.ctx)
			l.pair(1, 1, l.hash, nil).putOpen(l.ctx)
		},
		"a Join that names the body of its Open": func(l *lone) {
			p := l.pair(1, 1, l.hash, nil)
			body, err := stream.Marshal(p.open)
			must(l.t, err)
			hash := stream.HashOf(body)
			p.join.OpenHash = hash[:]
			p.joined, err = l.helper.Sign(p.join)
			must(l.t, err)
			p.putOpen(l.ctx)
			p.putJoin(l.ctx)
		},
		"a Join under the leader's key":  func(l *lone) { l.putSigned(l.stage) },
		"a Join under the learner's key": func(l *lone) { l.putSigned(l.learner) },
		"a Join under nobody's key":      func(l *lone) { l.putSigned(identity(l.t)) },
		"one key of both": func(l *lone) {
			p := l.pair(1, 1, l.hash, func(o *wire.Open, j *wire.Join) { j.PublicKey = o.PublicKey })
			p.putOpen(l.ctx)
			p.putJoin(l.ctx)
		},
		"one key of both, the Join first": func(l *lone) {
			p := l.pair(1, 1, l.hash, func(o *wire.Open, j *wire.Join) { j.PublicKey = o.PublicKey })
			p.putJoin(l.ctx)
			l.waits(5 * time.Second)
			p.putOpen(l.ctx)
		},
		"a Join of another round": func(l *lone) {
			p := l.pair(1, 1, l.hash, func(_ *wire.Open, j *wire.Join) { j.ManifestHash = make([]byte, 32) })
			p.putOpen(l.ctx)
			p.putJoin(l.ctx)
		},
		"a Join under X25519 alone": func(l *lone) {
			key, err := seal.NewRoundKey(wire.Suite_SUITE_X25519)
			must(l.t, err)
			p := l.pair(1, 1, l.hash, func(_ *wire.Open, j *wire.Join) {
				j.Suite, j.PublicKey = wire.Suite_SUITE_X25519, key.Public()
			})
			p.putOpen(l.ctx)
			p.putJoin(l.ctx)
		},
	} {
		for _, wakes := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, wakes %t", name, wakes), func(t *testing.T) {
				alone(t, plan{}, func(l *lone) {
					if !wakes {
						l.broker.Inject(func(op memory.Op, _ string) memory.Fault {
							if op == memory.Wake {
								return memory.Lost
							}
							return memory.None
						})
					}
					put(l)
					l.waits(time.Hour)
					if n := len(l.sent(1)); n != 0 {
						t.Errorf("%d messages were sent", n)
					}
					l.paid(0)
					// A leader that sees that goes to the next number, and the device with it.
					p := l.pair(1, 2, l.hash, nil)
					p.putOpen(l.ctx)
					p.putJoin(l.ctx)
					l.waits(time.Hour)
					if n := len(l.sent(2)); n != 1 {
						t.Errorf("%d messages in the next attempt, want 1", n)
					}
					l.paid(1)
				})
			})
		}
	}
}

// putSigned puts an attempt whose Join somebody signed.
func (l *lone) putSigned(by *seal.Identity) {
	p := l.pair(1, 1, l.hash, nil)
	var err error
	p.joined, err = by.Sign(p.join)
	must(l.t, err)
	p.putOpen(l.ctx)
	p.putJoin(l.ctx)
}

// TestPartsInAnyOrder: Open and Join are acted on together, in whatever order they come and whether or not wakes tell of
// them.
func TestPartsInAnyOrder(t *testing.T) {
	for _, joinFirst := range []bool{false, true} {
		for _, lost := range []string{"", "open", "join", "openjoin"} {
			for _, apart := range []time.Duration{0, 20 * time.Second} {
				alone(t, plan{deadline: 10 * time.Minute}, func(l *lone) {
					l.broker.Inject(func(op memory.Op, subject string) memory.Fault {
						if a, err := stream.ParseSubject(subject); err == nil && op == memory.Wake && lost != "" &&
							bytes.Contains([]byte(lost), []byte(a.Verb)) {
							return memory.Lost
						}
						return memory.None
					})
					p := l.pair(1, 1, l.hash, nil)
					puts := []func(context.Context){p.putOpen, p.putJoin}
					if joinFirst {
						slices.Reverse(puts)
					}
					puts[0](l.ctx)
					l.waits(apart)
					puts[1](l.ctx)
					l.waits(time.Hour)
					if n := len(l.sent(1)); n != 1 {
						t.Errorf("Join first %t, wakes lost %q, %v apart: %d messages, want 1", joinFirst, lost, apart, n)
					}
					p.close(l.ctx, everything)
					l.told(participation.Counted)
				})
			}
		}
	}
}

// TestAnotherJoinStands: a broker that lost a Join shows another one of the same Open. That is another attempt: the
// device reads which one is on the broker, and sends there under another id. The Close of the first counts nobody.
func TestAnotherJoinStands(t *testing.T) {
	for _, first := range []bool{true, false} {
		alone(t, plan{}, func(l *lone) {
			p := l.opens(1)
			l.broker.Lose(l.name.Join(1, 1))
			q := l.pair(1, 1, l.hash, nil)
			q.open, q.opened, q.leader = p.open, p.opened, p.leader
			q.join.OpenHash = p.join.OpenHash
			var err error
			q.joined, err = l.helper.Sign(q.join)
			must(t, err)
			q.putJoin(l.ctx)
			l.waits(time.Minute)
			got := l.sent(1)
			if len(got) != 2 || bytes.Equal(got[0].Ids[0], got[1].Ids[0]) {
				t.Fatalf("%d messages, want 2 of different ids", len(got))
			}
			p.shares(got[0])
			q.shares(got[1])
			l.paid(1)
			if first {
				p.close(l.ctx, everything)
			} else {
				q.close(l.ctx, everything)
			}
			l.told(participation.Counted) // the broker stored both, and the Close says which one matters
		})
	}
}

// TestLateJoinIsNoHerd: users draw when they join, as the Open says, from the Join on: one that comes half an hour late
// does not have all of them join at once.
func TestLateJoinIsNoHerd(t *testing.T) {
	for _, late := range []time.Duration{0, 30 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 1, cohort: 60, deadline: 2 * time.Hour, trust: accounting.Split})
			c := w.dear(participation.NewMemoryStore())
			var last atomic.Pointer[device.Progress]
			c.Progress = func(p device.Progress) { last.Store(&p) }
			dev := w.client(c)
			device.SetChance(dev, 1)
			for i := range 60 {
				must(t, device.Offer(t.Context(), dev, participation.EventKey(fmt.Sprint(i)), func(device.Outcome) {}))
			}
			device.Begin(dev)
			p := w.pair(1, 1, w.announce(t.Context(), 1), func(o *wire.Open, _ *wire.Join) {
				o.JoinProbability, o.JoinDoublingMs = 1<<28, 5*60*1000
			})
			p.putOpen(t.Context())
			time.Sleep(late)
			if synctest.Wait(); late > 0 && (!last.Load().Unjoined || last.Load().Open) {
				t.Errorf("%v after the Open, without a Join: %+v", late, last.Load().Standing)
			}
			now := time.Now().UnixMilli()
			p.join.StartedUnixMs = now
			var err error
			p.joined, err = w.helper.Sign(p.join)
			must(t, err)
			p.putJoin(t.Context())
			for _, step := range []struct {
				after       time.Duration
				least, most int
			}{{time.Minute, 1, 10}, {time.Hour, 60, 60}} {
				time.Sleep(step.after)
				if synctest.Wait(); last.Load().Unjoined {
					t.Errorf("%v after the Join: unjoined", step.after)
				}
				if n := w.reports(1, 1); n < step.least || n > step.most {
					t.Errorf("%v late, %v after the Join: %d of 60 have joined, want %d to %d", late, step.after, n, step.least,
						step.most)
				}
			}
			must(t, dev.Close())
		})
	}
}
