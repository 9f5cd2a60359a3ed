package operators

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/shuffle/helper"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
)

// TestLyingBroker: both operators are honest, the broker between them is not. No round is void, and nobody is counted
// twice.
func TestLyingBroker(t *testing.T) {
	between := func(name string, meddle func(s *siege, leader, helper *liar) func(context.Context)) {
		besiege(t, name, plan{rounds: 2, cohort: 3}, func(s *siege) {
			l, h := s.liar(), s.liar()
			does := meddle(s, l, h)
			leader, second := s.leads(l), s.helps(h)
			s.runs(s.ctx, does)
			_, _ = leader.stop(), second.stop()
		})
	}
	rest := func(context.Context) {}

	between("repeats, changes, swaps and drops what the two say", func(_ *siege, l, _ *liar) func(context.Context) {
		rng := rand.New(rand.NewPCG(5, 6))
		var mu sync.Mutex
		lie := func() func([]byte) [][]byte {
			var old [][]byte
			return func(m []byte) (out [][]byte) {
				mu.Lock()
				defer mu.Unlock()
				old = append(old, bytes.Clone(m))
				for range 4 {
					one := bytes.Clone(old[rng.IntN(len(old))])
					if rng.IntN(2) == 0 {
						one[rng.IntN(len(one))] ^= 1 << rng.IntN(8)
					}
					out = append(out, one)
				}
				if rng.IntN(3) > 0 {
					out = append(out, m)
				}
				rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
				return out
			}
		}
		l.toHelper, l.toLeader = lie(), lie()
		return rest
	})

	between("lets two processes of the leader have the lease", func(s *siege, l, _ *liar) func(context.Context) {
		l.alone = true
		return func(ctx context.Context) {
			other := s.liar()
			other.alone = true
			two := s.leads(other)
			<-ctx.Done()
			_ = two.stop()
		}
	})

	// Each record is lost once, as soon as it is stored.
	for name, of := range map[string]func(s *siege) string{
		"the Open":  func(s *siege) string { return s.name.Open(1, 1) },
		"the claim": func(s *siege) string { return s.name.Claim(1) },
		"the Close": func(s *siege) string { return s.name.Close(1, 1) },
		"the lease": func(s *siege) string { return s.name.Lease() },
	} {
		between("loses "+name, func(s *siege, _, _ *liar) func(context.Context) {
			return func(ctx context.Context) {
				for ctx.Err() == nil && !s.broker.Lose(of(s)) {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
}

// TestTwoJoins: the broker forgets a Join, and the helper's next process joins the same Open again: leader and devices know
// different attempts of one number. The round goes on with the next one.
func TestTwoJoins(t *testing.T) {
	besiege(t, "two Joins of one Open", plan{rounds: 2, cohort: 3}, func(s *siege) {
		leader, second := s.leads(s.liar()), s.helps(s.liar())
		s.runs(s.ctx, func(ctx context.Context) {
			for ctx.Err() == nil && !s.broker.Lose(s.name.Join(1, 1)) {
				time.Sleep(time.Millisecond)
			}
			_ = second.stop()
			second = s.helps(s.liar())
		})
		_, _ = leader.stop(), second.stop()
	})
}

// TestLateLook: a process of the leader looks into the folder, and learns only afterwards from the broker or its marks
// that the other has prepared the round, and perhaps released and claimed it, before it died. It looks again, and puts
// the batch.
func TestLateLook(t *testing.T) {
	for name, share := range map[string]bool{"the mark is seen late": false, "the Share is seen late": true} {
		besiege(t, name, plan{rounds: 1, cohort: 3}, func(s *siege) { lateLook(s, share) })
	}
}

// lateLook has two processes work at the same time, of whom one dies after its claim. share: the helper puts its Share
// before the other looks for it.
func lateLook(s *siege, share bool) {
	h := s.betrays() // which is honest here
	first, second := s.liar(), s.liar()
	first.alone, second.alone = true, true
	first.puts = func(subject string, _ []byte) (stream.PutResult, error, bool) {
		return stream.PutResult{}, context.DeadlineExceeded, subject == s.name.Batch(1)
	}
	one := s.leads(first)
	s.announce(1)
	b := h.serves(1, 1, 2)
	s.wait(5 * time.Second)
	reached, goes := make(chan bool), make(chan bool)
	var once sync.Once
	second.hides = func(subject string) bool {
		if subject == s.name.Share(1) {
			once.Do(func() {
				close(reached)
				<-goes
			})
		}
		return false
	}
	two := s.leads(second)
	<-reached
	s.send(s.ctx, b.x, s.report(&b.opening, s.users(3)[2:], nil))
	for s.find(s.name.Claim(1)) == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if share {
		s.put(s.ctx, s.name.Share(1), b.share)
	}
	_ = one.stop()
	close(goes)
	if got := s.batch(1); got == nil || got.Void || got.Users != 3 {
		s.t.Errorf("the batch is %v, want the three users", got)
	}
	if _, _, voids := s.out.audit(s.t); voids > 0 {
		s.t.Error("a round is void whose Share is in the folder")
	}
	_ = two.stop()
}

// TestHostileDevices: what devices send beside honest ones is refused by both operators together, and totals hold the
// honest ones alone.
func TestHostileDevices(t *testing.T) {
	besiege(t, "counts out of range, shares of noise, copies and ids of others", plan{rounds: 1, cohort: 3}, func(s *siege) {
		decided := map[split.Outcome]uint64{}
		var mu sync.Mutex
		leader := s.leads(s.liar())
		second := s.help(s.ctx, func(c *helper.Config) {
			c.Observer.Decided = func(o split.Outcome, n uint64) {
				mu.Lock()
				defer mu.Unlock()
				decided[o] += n
			}
		})
		s.announce(1)
		var o *opening
		for o == nil {
			time.Sleep(50 * time.Millisecond)
			if s.newest(s.ctx, 1) == 1 {
				o = s.opening(1, 1, 1)
			}
		}
		users := s.users(3)
		honest := s.report(o, users[:1], nil)
		stranger := s.users(1)
		for _, change := range []func(*seal.SharedReport){
			func(r *seal.SharedReport) { r.Leader[0] ^= 1 },                       // a count that is none
			func(r *seal.SharedReport) { r.Leader[15] ^= 0x40 },                   // one of 2^126
			func(r *seal.SharedReport) { r.Leader[len(r.Leader)-40] ^= 1 },        // the proof
			func(r *seal.SharedReport) { r.Helper[3] ^= 1 },                       // the helper's seed
			func(r *seal.SharedReport) { r.Leader = r.Leader[:len(r.Leader)-16] }, // other dimensions
			func(r *seal.SharedReport) { r.Leader = append(r.Leader, make([]byte, 16)...) },
			func(r *seal.SharedReport) { r.Leader, r.Helper = r.Helper, r.Leader },
			func(r *seal.SharedReport) { r.Associated[5] ^= 1 }, // another id
			func(r *seal.SharedReport) { r.Public[0] = bytes.Repeat([]byte{1}, 64) },
			func(r *seal.SharedReport) { r.Public[0] = r.Public[0][:32] },
			func(r *seal.SharedReport) { r.Public[0][40] ^= 1 },
			func(r *seal.SharedReport) { clear(r.Leader) },
			func(r *seal.SharedReport) { copy(r.Leader, bytes.Repeat([]byte{255}, 32)) }, // outside of the field
		} {
			s.send(s.ctx, o.x, s.report(o, s.users(1), change))
		}
		for _, data := range [][]byte{nil, []byte("noise"), honest[:len(honest)/2], bytes.Repeat(honest, 2)} {
			s.send(s.ctx, o.x, data)
		}
		s.send(s.ctx, o.x, honest)
		s.send(s.ctx, o.x, honest)
		s.send(s.ctx, o.x, s.report(o, users[:1], nil)) // shared again, under one id
		for range 2 {                                   // one id, first with a wrong proof, then with a right one
			s.send(s.ctx, o.x, s.report(o, stranger, func(r *seal.SharedReport) { r.Leader[0] ^= 1 }))
		}
		s.send(s.ctx, o.x, s.report(o, stranger, nil))
		for i := range users[1:] {
			s.send(s.ctx, o.x, s.report(o, users[i+1:i+2], nil))
		}
		b := s.batch(1)
		if b == nil || b.Void || b.Users != 3 {
			s.t.Fatalf("the batch is %v, want the three honest users", b)
		}
		for j, n := range b.Totals {
			if n < levels || n > levels+2*floor {
				s.t.Errorf("coordinate %d has total %d, want %d and two floors", j, n, levels)
			}
		}
		mu.Lock()
		if decided[split.Accepted] != 3 {
			s.t.Errorf("the helper decided %v", decided)
		}
		mu.Unlock()
		_, _ = leader.stop(), second.stop()
	})
}

// A logbook holds the texts of log lines.
type logbook struct {
	mu   sync.Mutex
	said map[string]bool
}

func (b *logbook) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, text, ok := strings.Cut(string(line), "level="); ok {
		if end := strings.Index(text, "\" "); end > 0 {
			text = text[:end]
		}
		b.said[text] = true
	}
	return len(line), nil
}

// TestNothingTellsTheSum: what an honest leader logs, observes and puts beside its totals, while a helper shifts its
// Share, is the same whatever its users send.
func TestNothingTellsTheSum(t *testing.T) {
	told := func(coordinate int, shift func(*split.Share)) (lines []string) {
		synctest.Test(t, func(t *testing.T) {
			s := &siege{world: newWorld(t, plan{rounds: 1, cohort: 3}), t: t, ctx: t.Context(), out: newLeavings()}
			book := &logbook{said: map[string]bool{}}
			s.log = slog.New(slog.NewTextHandler(book, nil))
			h := s.betrays()
			h.finish = func(b *betrayed, _ []byte) [][]byte { return [][]byte{h.other(b, shift)} }
			one := s.lead(s.ctx, func(c *stage.Config) {
				c.Observer.Voided = func(stream.Round) { book.Write([]byte("level=voided")) } //nolint:errcheck // in memory
			})
			s.announce(1)
			b := h.joinsAt(1, 1)
			for range 3 {
				s.send(s.ctx, b.x, s.report(&b.opening, []user{{coordinate: coordinate, draw: fresh()}}, nil))
			}
			if got := s.batch(1); got == nil || !got.Void || len(got.Totals) > 0 {
				t.Errorf("the batch is %v, want a void one", got)
			}
			_ = one.stop()
			lines = slices.Sorted(maps.Keys(book.said))
		})
		return lines
	}
	one, other := told(0, shifted), told(2, shifted)
	if len(one) < 4 || !slices.Equal(one, other) {
		t.Errorf("the log tells what users sent:\n%q\n%q", one, other)
	}
}
