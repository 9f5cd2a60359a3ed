package stage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/shuffle/stage/markfile"
	"github.com/panlearn/panlearn/stream"
)

// elsewhere returns the same task at another broker, which does not see what this one stores.
func (w *world) elsewhere() *world {
	other := *w
	var err error
	if other.broker, err = memory.New(memory.Config{AckWait: 5 * time.Second}); err != nil {
		w.t.Fatal(err)
	}
	return &other
}

// marksOf returns the marks of two processes: one object that both have, or two handles of one folder.
var marksOf = map[string]func(t *testing.T) (one, two Marks){
	"memory": func(*testing.T) (one, two Marks) {
		m := &memoryMarks{}
		return m, m
	},
	"folder": func(t *testing.T) (one, two Marks) {
		dir := filepath.Join(t.TempDir(), "claimed")
		handles := [2]Marks{}
		for i := range handles {
			m, err := markfile.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			handles[i] = m
		}
		return handles[0], handles[1]
	},
}

// TestMarksOnTwoBrokers: two processes of a stage see a broker each that knows nothing of the other's, and both open
// the round and fill it, at once or one after the other. Both hold a lease and see no claim. With marks in common one
// of them releases, and the other's round is void, without a claim.
func TestMarksOnTwoBrokers(t *testing.T) {
	for kind, marks := range marksOf {
		for _, apart := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprintf("%s/%v", kind, apart), func(t *testing.T) {
				one, two := marks(t)
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, plan{cohort: 4, spares: 1})
					brokers := [2]*world{w, w.elsewhere()}
					var invitations [2]*invitation
					var stops [2]func() error
					dropped := 0
					for i, f := range brokers {
						f.announce(t.Context())
						c := f.config()
						c.Marks = [2]Marks{one, two}[i]
						c.Observer.Dropped = func(stream.Round, stream.Attempt) { dropped++ }
						_, stops[i] = f.start(c)
						invitations[i] = f.invited(t.Context(), 1, 0)
					}
					for i, f := range brokers {
						users := w.users(1)
						users[3] += uint64(i) // the difference that two totals would tell
						f.answer(t.Context(), invitations[i], users)
						time.Sleep(apart)
					}
					time.Sleep(5 * time.Minute)
					for i := range brokers {
						_ = stops[i]()
					}
					real := 0
					for i, f := range brokers {
						b, _ := f.batch(1)
						if b == nil {
							t.Fatalf("broker %d has no batch", i)
						}
						_, err := f.broker.Get(t.Context(), f.name.Claim(1))
						switch {
						case !b.Void && err == nil:
							real++
						case !b.Void || b.Reason != voidClaimLost || b.Cutoff != math.MaxUint64 || !errors.Is(err, stream.ErrNotFound):
							t.Errorf("broker %d: batch %v, claim %v, want a void batch that charges everybody and no claim", i, b, err)
						}
						if _, err := f.broker.Get(t.Context(), f.name.Close(1, 1)); err != nil {
							t.Errorf("broker %d: Close of the round: %v", i, err)
						}
					}
					if real != 1 || dropped != 1 {
						t.Errorf("%d brokers got totals and %d releases were dropped, want 1 and 1", real, dropped)
					}
				})
			})
		}
	}
}

// turning is a connection to a broker that loses, at a turn, everything but leases.
type turning struct {
	leases *memory.Broker
	to     atomic.Pointer[memory.Broker]
}

func (r *turning) PutOnce(ctx context.Context, subject string, data []byte) (stream.PutResult, error) {
	return r.to.Load().PutOnce(ctx, subject, data)
}

func (r *turning) Get(ctx context.Context, subject string) (stream.Message, error) {
	if a, _ := stream.ParseSubject(subject); a.Verb == "lease" {
		return r.leases.Get(ctx, subject)
	}
	return r.to.Load().Get(ctx, subject)
}

func (r *turning) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	return r.to.Load().Latest(ctx, pattern)
}

func (r *turning) Swap(ctx context.Context, subject string, expected uint64, data []byte) (uint64, error) {
	return r.leases.Swap(ctx, subject, expected, data)
}

func (r *turning) Watch(ctx context.Context, task stream.Task) (<-chan stream.Wake, error) {
	return r.to.Load().Watch(ctx, task)
}

// TestMarksOfAProcess: a process without marks claims a round, loses its lease, and the broker has lost claim and
// batch. It does not open the round again.
func TestMarksOfAProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 4})
		w.announce(t.Context())
		c := w.config()
		turn := &turning{leases: w.broker}
		turn.to.Store(w.broker)
		c.Records = turn
		_, stop := w.start(c)
		w.answer(t.Context(), w.invited(t.Context(), 1, 0), w.users(1))
		if w.get(t.Context(), w.name.Close(1, 1)) == nil {
			t.Fatal("no Close")
		}
		w.forget()
		turn.to.Store(w.broker)
		lease, err := turn.leases.Get(t.Context(), w.name.Lease())
		if err != nil {
			t.Fatal(err)
		}
		other := newLease(w.name.Lease(), [stream.InstanceSize]byte{1}, time.Minute, time.Second)
		if _, err := turn.leases.Swap(t.Context(), w.name.Lease(), lease.Sequence, other.record(time.Minute)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		_ = stop()
		if _, err := w.broker.Latest(t.Context(), w.name.Opens(1)); !errors.Is(err, stream.ErrNotFound) {
			t.Errorf("the round was opened again: %v", err)
		}
		if b, _ := w.batch(1); b == nil || !b.Void || b.Reason != stream.VoidRoundLost {
			t.Errorf("batch of the lost round: %v, want a void one", b)
		}
	})
}
