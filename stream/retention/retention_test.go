package retention_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/retention"
)

const (
	task   stream.Task = "churn"
	rounds             = stream.Round(1500)
	apart              = time.Minute // rounds
)

// history returns a task of many rounds, the last of them announced. Every seventh round has two attempts, every fifth
// is void without one.
func history(t *testing.T) *memory.Broker {
	t.Helper()
	b, err := memory.New(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	put := func(subject string) {
		if _, err := b.PutOnce(t.Context(), subject, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	put(task.Stage())
	put(task.Helper())
	put(task.Task())
	for r := stream.Round(1); r <= rounds; r++ {
		put(task.Round(r))
		time.Sleep(apart)
		if r == rounds {
			break
		}
		last := stream.Attempt(1)
		if r%7 == 0 {
			last = 2
		}
		for a := stream.Attempt(1); r%5 != 0 && a <= last; a++ {
			put(task.Open(r, a))
			put(task.Join(r, a))
		}
		if r%5 != 0 {
			put(task.Share(r))
			put(task.Claim(r))
		}
		put(task.Batch(r))
		put(task.Close(r, last))
	}
	put(task.End())
	return b
}

// behind returns the age of the batch of a round that is so many behind the newest.
func behind(n stream.Round) time.Duration { return time.Duration(n-1) * apart }

// left returns the rounds of the records left, by verb.
func left(b *memory.Broker) map[string]map[stream.Round]bool {
	out := map[string]map[stream.Round]bool{}
	for _, m := range b.Dump() {
		a, err := stream.ParseSubject(m.Subject)
		if err != nil {
			panic(err)
		}
		if out[a.Verb] == nil {
			out[a.Verb] = map[stream.Round]bool{}
		}
		out[a.Verb][a.Round] = true
	}
	return out
}

// TestSweep: what goes is older than the age and further behind than the constant, and nothing else goes.
func TestSweep(t *testing.T) {
	for name, c := range map[string]struct {
		age    time.Duration
		before stream.Round
	}{
		"everything is young":      {behind(rounds), 0},
		"the age decides":          {behind(1200), rounds - 1200},
		"the number behind does":   {time.Hour, rounds - stream.KeptRounds},
		"the age is just too long": {behind(rounds - 1), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := history(t)
				before := left(b)
				out, err := retention.Sweep(t.Context(), b, task, c.age)
				if err != nil || out.Newest != rounds || out.Before != c.before {
					t.Fatalf("%+v, %v: want %d", out, err, c.before)
				}
				after := left(b)
				for verb, had := range before {
					for r := range had {
						if want := r == 0 || r >= c.before; after[verb][r] != want {
							t.Errorf("%s of round %d stands: %t, want %t", verb, r, !want, want)
						}
					}
				}
				if again, err := retention.Sweep(t.Context(), b, task, c.age); err != nil || again.Records != 0 {
					t.Errorf("again: %+v, %v", again, err)
				}
			})
		})
	}
}

var errCut = errors.New("cut off")

// cut is a broker that is cut off after some removals and listings.
type cut struct {
	*memory.Broker
	calls int
}

func (c *cut) Records(ctx context.Context, task stream.Task, s stream.Stream) iter.Seq2[retention.Record, error] {
	return func(yield func(retention.Record, error) bool) {
		for m, err := range c.Broker.Records(ctx, task, s) {
			if c.calls--; c.calls < 0 {
				m, err = retention.Record{}, errCut
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

func (c *cut) Remove(ctx context.Context, task stream.Task, s stream.Stream, sequences []uint64) error {
	for some := range slices.Chunk(sequences, 50) {
		if c.calls -= len(some); c.calls < 0 {
			return errCut
		}
		if err := c.Broker.Remove(ctx, task, s, some); err != nil {
			return err
		}
	}
	return nil
}

// TestSweepCutShort: wherever a sweep ends, a batch that is gone means that its round's other records are, and the
// next sweep ends it.
func TestSweepCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for calls := 0; ; calls += 230 {
			b := history(t)
			_, err := retention.Sweep(t.Context(), &cut{b, calls}, task, time.Hour)
			if err != nil && !errors.Is(err, errCut) {
				t.Fatal(err)
			}
			now := left(b)
			for r := stream.Round(1); r < rounds; r++ {
				if !now["batch"][r] && (now["round"][r] || now["open"][r] || now["claim"][r] || now["close"][r] ||
					now["join"][r] || now["share"][r]) {
					t.Fatalf("cut after %d calls: the batch of round %d is gone before the rest", calls, r)
				}
			}
			done := err == nil
			if _, err := retention.Sweep(t.Context(), b, task, time.Hour); err != nil {
				t.Fatal(err)
			}
			for verb, had := range left(b) {
				for r := range had {
					if r != 0 && r < rounds-stream.KeptRounds {
						t.Fatalf("cut after %d calls, and swept again: %s of round %d stands", calls, verb, r)
					}
				}
			}
			if done {
				return
			}
		}
	})
}

func TestSweepRefuses(t *testing.T) {
	b, err := memory.New(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := retention.Sweep(t.Context(), b, task, 0); err == nil {
		t.Error("an age below the smallest is taken")
	}
	if out, err := retention.Sweep(t.Context(), b, task, time.Hour); err != nil || out != (retention.Removed{}) {
		t.Errorf("no round: %+v, %v", out, err)
	}
}
