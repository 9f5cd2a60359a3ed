package stage

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestTwoStages: two healthy processes of one stage; one works, the other waits and ends with it.
func TestTwoStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 4, cohort: 3})
		var sent wires
		worked := 0
		one := func(ctx context.Context) {
			w.life(ctx, "", false, &sent, func(c *Config) {
				c.Observer.Opened = func(_ stream.Round, attempt stream.Attempt) {
					worked++
					if attempt != 1 {
						t.Errorf("attempt %d without a crash", attempt)
					}
				}
			})
		}
		w.run(t.Context(), one, one)
		sent.audit(t, w)
		if real, void := w.audit(); real != 4 || void != 0 || worked != 4 {
			t.Errorf("%d real, %d void batches, %d attempts", real, void, worked)
		}
	})
}

// TestStandbyTakesOver: a process that falls silent is replaced after its lease's time and wakes up to nothing: its
// totals and key are gone and it waits.
func TestStandbyTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 2, cohort: 3})
		var sent wires
		c := w.config()
		cut := &partition{Records: c.Records, ReportReader: c.Reports}
		dropped := 0
		w.run(t.Context(), func(ctx context.Context) {
			w.life(ctx, "", false, &sent, func(c *Config) {
				c.Records, c.Reports = cut, cut
				c.Observer.Opened = func(stream.Round, stream.Attempt) { cut.until = time.Now().Add(25 * time.Second) }
				c.Observer.Dropped = func(stream.Round, stream.Attempt) { dropped++ }
			})
		}, func(ctx context.Context) {
			time.Sleep(time.Second)
			w.life(ctx, "", false, &sent, nil)
		})
		sent.audit(t, w)
		if real, void := w.audit(); real != 2 || void != 0 || dropped == 0 {
			t.Errorf("%d real, %d void batches, %d dropped attempts", real, void, dropped)
		}
	})
}

// partition is a connection that fails until a time.
type partition struct {
	stream.Records
	stream.ReportReader
	until time.Time
}

func (p *partition) err() error {
	if time.Now().Before(p.until) {
		return errCrash
	}
	return nil
}

func (p *partition) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	if err := p.err(); err != nil {
		return stream.PutResult{}, err
	}
	return p.Records.PutOnce(ctx, subject, data)
}

func (p *partition) Get(ctx context.Context, subject string) (stream.Message, error) {
	if err := p.err(); err != nil {
		return stream.Message{}, err
	}
	return p.Records.Get(ctx, subject)
}

func (p *partition) Swap(ctx context.Context, subject string, expected uint64, data []byte) (uint64, error) {
	if err := p.err(); err != nil {
		return 0, err
	}
	return p.Records.Swap(ctx, subject, expected, data)
}

func (p *partition) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	if err := p.err(); err != nil {
		return nil, err
	}
	return p.ReportReader.Fetch(ctx, max, wait)
}

// TestFaults: two stages that are killed and restarted on a broker that loses, doubles, reorders and lags. Whatever
// happens, nobody is counted twice and no round has two outcomes.
func TestFaults(t *testing.T) {
	seeds := uint64(12)
	if longtest.Run(t, "all but the first 12 of 300 seeds") {
		seeds = 300
	}
	for seed := range longtest.Seeds(t, seeds) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, plan{rounds: 2, cohort: 4, spares: 6, broker: memory.Config{
					Shuffle: true, Seed: seed,
					Inject: memory.Random(seed, memory.Rates{LostAck: 0.15, Lost: 0.1, Duplicate: 0.15, Lag: 0.2}),
				}})
				var sent wires
				process := func(salt uint64) func(context.Context) {
					rng := rand.New(rand.NewPCG(seed, salt))
					return func(ctx context.Context) {
						for life := 0; ; life++ {
							limited, stop := ctx, context.CancelFunc(func() {})
							if life < 4 {
								limited, stop = context.WithTimeout(ctx, time.Duration(rng.IntN(40_000))*time.Millisecond)
							}
							_, lived := w.lifeUntil(limited, &sent)
							stop()
							if lived || ctx.Err() != nil {
								return
							}
							time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
						}
					}
				}
				w.run(t.Context(), process(1), process(2))
				w.broker.Inject(nil)
				sent.audit(t, w)
				if real, void := w.audit(); real != 2 {
					t.Errorf("seed %d: %d real, %d void batches", seed, real, void)
				}
			})
		})
	}
}

// lifeUntil runs a life that a timeout may end, gracefully.
func (w *world) lifeUntil(ctx context.Context, sent *wires) (trace []string, lived bool) {
	c := w.config()
	m := &mortal{Records: c.Records, ReportReader: c.Reports, die: func() {}, wires: sent, times: map[string]int{}}
	c.Records, c.Reports = m, m
	err := w.new(c).Run(ctx)
	if err != nil && ctx.Err() == nil {
		w.t.Errorf("Run: %v", err)
	}
	return m.trace, err == nil
}

// loose is a connection on which everybody gets the lease: the worst that a broker can do about it.
type loose struct{ stream.Records }

func (l loose) Swap(context.Context, string, uint64, []byte) (uint64, error) { return 1, nil }

func (l loose) Get(ctx context.Context, subject string) (stream.Message, error) {
	if a, _ := stream.ParseSubject(subject); a.Verb == "lease" {
		return stream.Message{}, stream.ErrNotFound
	}
	return l.Records.Get(ctx, subject)
}

// TestSafetyWithoutALease: three processes that all believe to hold the lease lose reports and attempts, but the claim
// still lets one batch through. Users answer every attempt for as long as there is no batch.
func TestSafetyWithoutALease(t *testing.T) {
	rivals := 0
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 2, cohort: 3, spares: 8, broker: memory.Config{Shuffle: true, Seed: seed,
				AckWait: time.Second}})
			var sent wires
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
			defer stop()
			var stages []func(context.Context)
			for i := range 3 {
				stages = append(stages, func(ctx context.Context) {
					time.Sleep(time.Duration(i) * 350 * time.Millisecond)
					for ctx.Err() == nil {
						limited, over := context.WithTimeout(ctx, time.Duration(5+3*i)*time.Second)
						c := w.config()
						m := &mortal{Records: loose{c.Records}, ReportReader: c.Reports, die: func() {}, wires: &sent,
							times: map[string]int{}}
						c.Records, c.Reports = m, m
						err := w.new(c).Run(limited)
						over()
						if err == nil {
							return
						}
						if limited.Err() == nil {
							t.Errorf("Run: %v", err)
							return
						}
					}
				})
			}
			w.run(ctx, stages...)
			sent.audit(t, w)
			real, void := w.audit()
			t.Logf("seed %d: %d real, %d void batches", seed, real, void)
			if _, err := w.broker.Get(t.Context(), w.name.Open(1, 2)); err == nil {
				rivals++
			}
		})
	}
	if rivals == 0 {
		t.Error("no two attempts ever competed: this test shows nothing")
	}
}

// A witness keeps the slices that the stage was given.
type witness struct {
	stream.ReportReader
	given [][]byte
}

func (r *witness) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	ds, err := r.ReportReader.Fetch(ctx, max, wait)
	for _, d := range ds {
		r.given = append(r.given, d.Data)
	}
	return ds, err
}

// TestCountedReportsAreOverwritten: while the key of an attempt lives, no sealed report that was looked at lies beside
// it.
func TestCountedReportsAreOverwritten(t *testing.T) {
	for _, suite := range []wire.Suite{wire.Suite_SUITE_X25519, wire.Suite_SUITE_NONE} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{cohort: 10, suite: suite, trust: wire.Trust_TRUST_PAN})
			w.announce(t.Context())
			c := w.config()
			read := &witness{ReportReader: c.Reports}
			c.Reports = read
			s, stop := w.start(c)
			in := w.invited(t.Context(), 1, 0)
			w.answer(t.Context(), in, w.users(1)[:7])
			time.Sleep(10 * time.Second)
			if n := s.Status().Users; n != 7 || len(read.given) < 7 {
				t.Fatalf("%d users in the totals, %d reports read: want 7", n, len(read.given))
			}
			for i, data := range read.given {
				if len(data) == 0 || !bytes.Equal(data, make([]byte, len(data))) {
					t.Errorf("%v: report %d lies in memory as it came", suite, i)
				}
			}
			_ = stop()
		})
	}
}
