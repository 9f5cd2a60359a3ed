package helper

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/panics"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
)

// TestPanicErases: a helper that panics while it holds an attempt, in Run, where messages come or where reports are decided,
// ends with the panic as an error, and leaves neither key nor shares to a process that catches it and goes on. The next
// life of the same folder releases the round by another attempt.
func TestPanicErases(t *testing.T) {
	var none []int
	fault := func() { none[len(none)+2]++ }
	const inRun, messages, decisions = "in Run", "where messages come", "where reports are decided"
	for _, name := range []string{inRun, messages, decisions} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 6, 6)
				var h *Helper
				var held *attempt
				f := w.opened()
				c := w.config(f, f.Identity())
				c.Observer.Joined = func(stream.Round, stream.Attempt) {
					h.mu.Lock()
					held = h.held
					h.mu.Unlock()
					if name == inRun {
						fault()
					}
				}
				c.Observer.Message = func(Reason) {
					if name == messages {
						fault()
					}
				}
				c.Observer.Decided = func(split.Outcome, uint64) {
					if name == decisions {
						fault()
					}
				}
				h, err := New(c)
				w.must(err)
				over := make(chan error, 1)
				go func() {
					err := panics.Caught(func() error { return h.Run(t.Context()) })
					over <- errors.Join(err, f.Close())
				}()
				w.announce(t.Context(), 1)
				l := w.opens(t.Context(), 1, 1, nil)
				w.must(l.joined(t.Context(), t.Context()))
				if name != inRun {
					l.take(l.report(1, nil))
					r, _ := l.core.Cut()
					l.sends(&r)
				}
				time.Sleep(20 * time.Second)
				synctest.Wait()
				select {
				case err = <-over:
				default:
					t.Fatal("it goes on")
				}
				if !errors.As(err, new(*panics.Error)) || !strings.Contains(err.Error(), "index out of range") {
					t.Errorf("it ends with %v", err)
				}
				if held == nil || h.held != nil {
					t.Fatalf("held before %t, after %t", held != nil, h.held != nil)
				}
				if _, err := held.key.OpenVerifyKey(w.hash, &l.join); !errors.Is(err, seal.ErrErased) {
					t.Errorf("the key opens: %v", err)
				}
				if _, ok := held.helper.Work(); ok {
					t.Error("shares are left to decide")
				}
				next := w.start(t.Context(), nil)
				l = w.opens(t.Context(), 1, 2, nil)
				w.must(l.joined(t.Context(), t.Context()))
				w.must(l.fills(t.Context()))
				got, err := l.finishes(t.Context())
				w.must(err)
				w.checkTotals(got)
				_ = next.stop()
			})
		})
	}
}
