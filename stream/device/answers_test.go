package device_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A belated broker replies long after it stored.
type belated struct{ stream.Transport }

func (b belated) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks, err := b.Transport.Publish(ctx, reports)
	time.Sleep(3 * time.Second)
	return acks, err
}

// A Close that comes before the answer decides nobody until the answer is there: who was counted is not in doubt.
func TestCloseWaitsForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{rounds: 2, cohort: 10, deadline: time.Minute})
		store := participation.NewMemoryStore()
		w.play(t.Context(), func(ctx context.Context) {
			c := w.config(store)
			c.Transport = belated{c.Transport}
			sum, err := w.client(c).Run(ctx, rows(20, false))
			must(t, err)
			if sum.Counted != 20 {
				t.Errorf("%+v, want 20 counted", sum)
			}
		})
		for r := stream.Round(1); r <= 2; r++ { // a later run refuses another round of the same number
			if hash, found, err := store.Manifest(r); err != nil || !found || hash == (stream.Hash{}) {
				t.Errorf("round %d: the store does not know its manifest: %v", r, err)
			}
		}
	})
}

var errFull = errors.New("no space left")

// A fullDisk fails a write, and all after it.
type fullDisk struct {
	participation.Store
	left int
}

func (f *fullDisk) Write(c participation.Change) error {
	if f.left--; f.left < 0 {
		return errFull
	}
	return f.Store.Write(c)
}

// Whatever write fails, no caller gets an outcome that the store does not have: another process would return another
// one.
func TestNobodyIsToldWhatIsNotStored(t *testing.T) {
	for left := range 12 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, plan{rounds: 3, cohort: 4, deadline: time.Minute})
			disk := participation.NewMemoryStore()
			keys, told := make([]participation.Key, 8), make([]device.Outcome, 8)
			w.play(t.Context(), func(ctx context.Context) {
				dev := w.client(w.config(&fullDisk{disk, left}))
				done := make(chan int)
				for i := range keys {
					keys[i] = participation.RowKey("a", int64(i))
					go func() {
						told[i], _ = dev.Publish(ctx, keys[i], example(1))
						done <- i
					}()
				}
				for range keys {
					<-done
				}
				if err := dev.Close(); err != nil && !errors.Is(err, errFull) {
					t.Error(err)
				}
			})
			stored, err := disk.Read(keys)
			must(t, err)
			for i, o := range told {
				s := stored[i].State
				if o.State == participation.Counted && s != o.State || o.State == participation.Uncounted && s != o.State &&
					s != participation.Fresh {
					t.Errorf("after %d writes: told %v, stored %v", left, o, s)
				}
			}
		})
	}
}
