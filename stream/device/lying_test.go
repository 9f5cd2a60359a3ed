package device_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/wire"
)

// A falsifier stores every report, and replies to each publish with a sequence beyond every cutoff.
type falsifier struct{ stream.Transport }

func (l falsifier) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := l.Transport.Publish(ctx, reports)
	for i := range acks {
		if acks[i].Sequence > 0 {
			acks[i] = stream.Ack{Status: stream.Stored, Sequence: 1<<60 + acks[i].Sequence}
		}
	}
	return acks, err
}

// An unwritable takes no report.
type unwritable struct {
	stream.Transport
	t *testing.T
}

func (u unwritable) Publish(context.Context, []stream.Outgoing) ([]stream.Ack, error) {
	u.t.Error("a report was published")
	return nil, errors.New("not to be written")
}

// batches returns the rounds with an event in their batch, whatever outcome its device got.
func (s *spy) batches(w *world) map[participation.Key][]stream.Round {
	out := map[participation.Key][]stream.Round{}
	for _, m := range w.broker.Dump() {
		if m.Stream != stream.Reports {
			continue
		}
		a, err := stream.ParseSubject(m.Subject)
		must(s.t, err)
		var r wire.Report
		must(s.t, stream.Unmarshal(m.Data, &r))
		if c := w.closed(a.Round, a.Attempt); c == nil || c.Void || m.Sequence > c.Cutoff {
			continue
		}
		for _, id := range r.Ids {
			key := s.owner[[16]byte(id)]
			out[key] = append(out[key], a.Round)
		}
	}
	return out
}

// released returns the epsilon of the batches of one event by their mechanisms alone, as a learner sees them who
// has all of them or, where that costs more, an intruder who also looked into one.
func (w *world) released(rounds []stream.Round) (epsilon float64) {
	floors := w.params.FloorTrials > 0
	for look := -1; look < len(rounds) && (look < 0 || floors); look++ {
		var views []accounting.Mechanism
		for i, r := range rounds {
			at, _ := w.place(r)
			trials := at.Cohort*uint64(w.params.Trials) + 2*w.params.FloorTrials
			if i == look {
				trials = w.params.FloorTrials + uint64(w.params.Trials)
			}
			views = append(views, accounting.Mechanism{Trials: trials, P: 0.5, Levels: int(w.params.Levels), Dim: w.params.Dim,
				Rounds: 1})
		}
		e, err := accounting.Epsilon(w.task.Plan.Delta, views...)
		must(w.t, err)
		epsilon = max(epsilon, e)
	}
	return epsilon
}

// charged returns the epsilon that a task cost by the ledger: for the user of a key, or for everybody.
func (w *world) charged(l ledger.Ledger, key participation.Key) float64 {
	for a, err := range l.Accounts() {
		must(w.t, err)
		if a.Key == key {
			if i := ledger.Index(a.Charges, w.hash); i >= 0 {
				return a.Charges[i].Epsilon
			}
		}
	}
	return 0
}

// auditCharges insists that every event's batches together cost no more than the ledger says and the limit allows, and
// returns how many batches hold the event that most do.
func (s *spy) auditCharges(w *world, book ledger.Ledger, named bool, limit float64) (most int) {
	s.t.Helper()
	for key, rounds := range s.batches(w) {
		account := ledger.Everyone
		if named {
			account = key
		}
		most = max(most, len(rounds))
		if truth, says := w.released(rounds), w.charged(book, account); !(truth <= says*(1+1e-9)) ||
			!(says <= limit*(1+1e-9)) {
			s.t.Errorf("an event is in %d batches, which cost %v; the ledger says %v, of %v", len(rounds), truth, says, limit)
		}
	}
	return most
}

// A broker that lies makes devices believe that nobody was counted, while the stage counts everybody. Under a policy
// that sets nothing every event is in one batch, or in the batches of one interactive phase; a larger max_epsilon lets
// it be in more, and the ledger has their composition.
func TestLyingBrokerGetsWhatTheLedgerSays(t *testing.T) {
	phases := func(p ...*wire.Phase) func(*world) { return func(w *world) { w.replan(p...) } }
	for _, c := range []struct {
		name   string
		plan   plan
		change func(*world)
		limit  float64 // max_epsilon; 0 sets none
		most   int     // batches; 0: as many of one round as are within the limit
	}{
		{"the zero policy", plan{tight: true}, nil, 0, 1},
		{"the zero policy, under floors", plan{tight: true, trust: accounting.ShufflePan}, nil, 0, 1},
		{"a larger limit", plan{}, nil, 4, 0},
		{"a smaller limit", plan{}, nil, 2.2, 0},
		{"pan", plan{trust: accounting.Pan}, nil, 1.8, 0},
		{"shuffle and pan", plan{trust: accounting.ShufflePan}, nil, 1.3, 0},
		{"an interactive phase", plan{tight: true}, phases(asked(8, 3, 0), once(8, 4), asked(8, 2, 0)), 9.3, 3},
		{"interactive phases", plan{}, phases(asked(8, 3, 0), once(8, 2), asked(8, 2, 0)), 4, 4},
	} {
		for _, named := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				c.plan.rounds, c.plan.cohort, c.plan.deadline = 10, 8, time.Minute
				w := newWorld(t, c.plan)
				if c.change != nil {
					c.change(w)
				}
				limit, most, all := c.limit, c.most, []stream.Round{1}
				if limit == 0 {
					limit = 4 // the task's
				}
				s, book := newSpy(t, participation.NewMemoryStore()), memory.NewLedger()
				cfg := w.config(s)
				cfg.Policy.MaxEpsilon, cfg.Ledger, cfg.UserKeys, cfg.Transport = c.limit, book, named, falsifier{cfg.Transport}
				w.play(t.Context(), func(ctx context.Context) {
					ctx, stop := context.WithTimeout(ctx, 5*time.Hour)
					defer stop()
					var sum device.Summary
					var err error
					if named {
						sum, err = publishUsers(ctx, w.client(cfg), 8)
					} else {
						sum, err = w.client(cfg).Run(ctx, rows(8, false))
					}
					must(t, err)
					if sum.Events != 8 || sum.Uncounted != 8 || (!named && sum.NotAgain != 8 && c.most < 7) {
						t.Errorf("%s: %+v, want 8 that believe to be in no batch, and are not sent again", c.name, sum)
					}
				})
				for ; most == 0; all = append(all, 1) {
					if w.released(append(all, 1)) > limit {
						most = len(all)
					}
				}
				if got := s.auditCharges(w, book, named, limit); got != most {
					t.Errorf("%s, accounts of users %t: an event is in %d batches, want %d", c.name, named, got, most)
				}
				again := memory.NewLedger() // the ledger is lost: another one says no less
				cfg.Ledger, cfg.Transport = again, unwritable{cfg.Transport, t}
				dev := w.client(cfg)
				_, err := dev.Agreement(t.Context())
				must(t, errors.Join(err, dev.Close()))
				s.auditCharges(w, again, false, limit)
				if most > 8 || c.most == 0 && most < 2 {
					t.Errorf("%s: %d participations are within the limit: the case shows nothing", c.name, most)
				}
			})
		}
	}
}

// A moody broker stores all and replies to each report as it likes: truly, with a sequence beyond every cutoff or of
// another report, with a refusal, or not.
type moody struct {
	stream.Transport
	mu   *sync.Mutex // guards mood: a client makes several publishes at a time
	mood *rand.Rand
}

func (m moody) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := m.Transport.Publish(ctx, reports)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range acks {
		switch m.mood.IntN(9) {
		case 0:
		case 1:
			acks[i] = stream.Ack{}
		case 2:
			acks[i] = acks[m.mood.IntN(i+1)]
		case 3, 4:
			acks[i] = stream.Ack{Status: stream.Refused}
		case 5:
			acks[i] = stream.Ack{Status: stream.Duplicate, Sequence: 1<<60 + acks[i].Sequence}
		default:
			acks[i] = stream.Ack{Status: stream.Stored, Sequence: 1<<60 + acks[i].Sequence}
		}
	}
	return acks, err
}

// A broker that lies to some, to each in another way, and devices that are stopped and begun again in the middle.
func TestLyingToSome(t *testing.T) {
	most := 0
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 12))
			w := newWorld(t, plan{rounds: 10, cohort: 8, deadline: time.Minute, trust: []accounting.Trust{accounting.Shuffle,
				accounting.ShufflePan, accounting.Shuffle}[seed%3]})
			if seed%3 == 2 {
				w.replan(asked(8, 3, 0), once(8, 2), asked(8, 2, 0))
			}
			s, book := newSpy(t, participation.NewMemoryStore()), memory.NewLedger()
			w.play(t.Context(), func(ctx context.Context) {
				for life := range 6 {
					cfg := w.config(s)
					cfg.Policy.MaxEpsilon, cfg.Ledger, cfg.Transport = 4, book, moody{cfg.Transport, new(sync.Mutex),
						rand.New(rand.NewPCG(seed, uint64(life)))}
					short, stop := context.WithTimeout(ctx, time.Duration(1+random.IntN(90))*time.Second)
					if _, err := w.client(cfg).Run(short, rows(16, true)); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					stop()
				}
			})
			most = max(most, s.auditCharges(w, book, false, 4))
		})
	}
	if most < 2 {
		t.Errorf("no event is in more than %d batches: the test shows nothing", most)
	}
}

// The same with a device that dies at every write of its ledger, or of its store: between the two, too.
func TestLyingBrokerAndDeaths(t *testing.T) {
	for _, inLedger := range []bool{true, false} {
		for _, lost := range []bool{true, false} {
			died := true
			for i := 1; died; i++ {
				if i > 60 {
					t.Fatal("the run never gets by without the death")
				}
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, plan{rounds: 6, cohort: 4, deadline: time.Minute})
					s, book := newSpy(t, participation.NewMemoryStore()), &gravedigger{Ledger: memory.NewLedger(), lost: lost}
					if s.lost = lost; inLedger {
						book.failAt = i
					} else {
						s.failAt = i
					}
					w.play(t.Context(), func(ctx context.Context) {
						run := func() error {
							cfg := w.config(s)
							cfg.Policy.MaxEpsilon, cfg.Ledger, cfg.Transport = 2.2, book, falsifier{cfg.Transport}
							_, err := w.client(cfg).Run(ctx, rows(4, false))
							s.auditCharges(w, book, false, 2.2)
							return err
						}
						err := run()
						if died = errors.Is(err, errDied); died {
							s.failAt, book.failAt = 0, 0
							err = run()
						}
						must(t, err)
					})
					// Answers that the dead device did not store leave its events in doubt, for good.
					if got := s.auditCharges(w, book, false, 2.2); got > 3 || got != 3 && (!died || inLedger) {
						t.Errorf("death at write %d, of the ledger %t: an event is in %d batches, want 3", i, inLedger, got)
					}
				})
			}
		}
	}
}

// What a lying broker gets in one task is not there for the next: the totals hold over both.
func TestLyingBrokerAndTotals(t *testing.T) {
	for _, named := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			book, limit := memory.NewLedger(), 2.5
			var truth float64
			var most []int
			for range 2 {
				w := newWorld(t, plan{rounds: 10, cohort: 8, deadline: time.Minute})
				s := newSpy(t, participation.NewMemoryStore())
				cfg := w.config(s)
				cfg.Policy.MaxEpsilon, cfg.Policy.MaxTotalEpsilon = 1.7, limit // two participations in the first task alone
				cfg.Ledger, cfg.UserKeys, cfg.Transport = book, named, falsifier{cfg.Transport}
				w.play(t.Context(), func(ctx context.Context) {
					ctx, stop := context.WithTimeout(ctx, 5*time.Hour)
					defer stop()
					run := func() (device.Summary, error) { return w.client(cfg).Run(ctx, rows(8, false)) }
					if named {
						run = func() (device.Summary, error) { return publishUsers(ctx, w.client(cfg), 8) }
					}
					switch sum, err := run(); {
					case len(most) == 0:
						must(t, err)
					case named:
						if sum.Refused != 8 {
							t.Errorf("the second task: %+v, want 8 users refused", sum)
						}
					default:
						refusal(t, "the second task", err, "total epsilon")
					}
				})
				most = append(most, s.auditCharges(w, book, named, cfg.Policy.MaxEpsilon))
				worst := 0.0
				for _, rounds := range s.batches(w) {
					worst = math.Max(worst, w.released(rounds))
				}
				truth += worst
			}
			if !(truth <= limit) || fmt.Sprint(most) != "[2 0]" {
				t.Errorf("accounts of users %t: %v batches, which cost %v of %v", named, most, truth, limit)
			}
		})
	}
}
