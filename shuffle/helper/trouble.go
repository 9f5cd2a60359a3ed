package helper

import (
	"context"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/stream"
)

// troubles are the calls that fail, by name.
type troubles map[string]*trouble

type trouble struct {
	series stream.Trouble
	cause  string
	since  time.Time // of the first failure
	last   time.Time
}

// ofDisk are the calls that ask the folder.
const (
	callFolder = "folder"
	callMark   = "mark"
)

// failed notes that a call failed, and logs it where that is due. h.mu is held.
func (h *Helper) failed(ctx context.Context, call string, err error) {
	now := time.Now()
	t := h.troubles[call]
	if t == nil {
		t = &trouble{since: now}
		h.troubles[call] = t
	}
	t.cause, t.last = err.Error(), now
	text := "a call of the broker failed, trying again"
	if call == callFolder || call == callMark {
		text = "the helper cannot use its own --state, trying again: nothing is released meanwhile. Make room on its disk, or give it back; nothing has to be restarted"
	}
	h.Logger.Log(ctx, t.series.Level(now, err), text, "call", call, "error", err)
	observe.Tell(h.Observer.Failed, call)
}

// worked notes that a call worked. h.mu is held.
func (h *Helper) worked(call string) {
	t := h.troubles[call]
	if t == nil {
		return
	}
	if delete(h.troubles, call); t.series.Over() {
		h.Logger.Info("works again", "call", call)
	}
}

// outcome notes how a call ended, unless the context did.
func (h *Helper) outcome(ctx context.Context, call string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		h.worked(call)
	case ctx.Err() == nil:
		h.failed(ctx, call, err)
	}
}

// standing returns the cause of the call that failed last, and the time since when calls fail.
func (t troubles) standing() (cause string, since time.Time) {
	var last time.Time
	for _, one := range t {
		if cause == "" || one.last.After(last) {
			cause, last = one.cause, one.last
		}
		if since.IsZero() || one.since.Before(since) {
			since = one.since
		}
	}
	return cause, since
}
