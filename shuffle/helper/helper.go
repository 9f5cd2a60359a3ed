package helper

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panlearn/panlearn/internal/panics"
	"github.com/panlearn/panlearn/shuffle/helper/folder"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Helper is one helper process of one task.
type Helper struct {
	Config
	ran    atomic.Bool
	jitter *rand.Rand    // of Run's goroutine
	kick   chan struct{} // makes Run's goroutine look

	// Of the Task, from before the exchange is served.
	task *wire.Task
	hash stream.Hash

	deciding sync.WaitGroup
	caught   panics.First // of what runs beside Run

	mu       sync.Mutex // guards all below
	desk     *split.Desk
	mark     split.HelperMark
	held     *attempt     // nil: none
	closing  *closing     // a release that waits for the folder; nil: none
	share    []byte       // the mark's Share, while it has to be put
	shown    stream.Round // the round of a Share that is to be read; 0: none
	heard    time.Time    // when the leader's last message came
	stopped  error        // why the helper stops for good
	over     bool         // Run is over: nothing begins any more
	troubles stream.Troubles
	status   Status
}

// errRan is returned by Run if it was called before; a Helper lives once.
var errRan = errors.New("helper: Run was called before: make a new Helper")

// Run works until the task ends (nil), the context ends (its error), or something is wrong that repeating does not mend.
// Whatever it returns, keys and shares are gone. Call it once.
func (h *Helper) Run(ctx context.Context) error {
	if h.ran.Swap(true) {
		return errRan
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	whole := false
	defer func() {
		if !whole { // somebody may catch the panic: what must not outlive Run is erased, or the process ends
			late := time.AfterFunc(h.Lease, func() { panic("helper: shares and keys could not be erased after a panic") })
			defer late.Stop()
		}
		h.finish()
		h.deciding.Wait()
	}()
	err := h.run(ctx)
	whole = true
	return err
}

func (h *Helper) run(ctx context.Context) error {
	f := &follower{Helper: h, broker: broker{Helper: h, brought: map[string]stream.Message{}}}
	f.broker.watch(ctx)
	if err := f.enlist(ctx); err != nil {
		return err
	}
	if err := f.broker.insist(ctx, "serve", func(context.Context) error {
		return h.Exchange.ServeExchange(ctx, h.Task, func(subject string, message []byte, reply func([]byte)) {
			if h.caught.Do(func() { h.take(subject, message, reply) }); h.caught.Any() {
				h.look()
			}
		})
	}); err != nil {
		return err
	}
	return f.follow(ctx)
}

// finish erases what the process holds. A release that waits for the folder has one more chance.
func (h *Helper) finish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.commit()
	h.over = true
	h.drop()
	h.status.Phase = "ended"
}

// stop ends the helper for good. h.mu is held.
func (h *Helper) stop(err error) {
	if h.stopped == nil {
		h.stopped = err
	}
	h.look()
}

// look makes Run's goroutine look.
func (h *Helper) look() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// shows looks at a Share that the broker shows: with the helper's own signature, of a release that the folder does not
// know, the folder is a copy or was put back.
func (h *Helper) shows(s split.Share) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.desk.Shown(s) {
		return nil
	}
	err := fmt.Errorf("helper's folder: %w", folder.Older(
		"round %d has a Share that this identity signed, and its last release is of round %d", s.X.Round, h.mark.X.Round))
	h.stop(err)
	return err
}
