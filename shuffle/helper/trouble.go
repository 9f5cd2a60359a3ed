package helper

import (
	"context"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
)

// Names of the calls that use the folder.
const (
	callFolder = "folder"
	callMark   = "mark"
)

// failed notes that a call failed, and logs it where that is due. h.mu is held.
func (h *Helper) failed(ctx context.Context, call string, err error) {
	text := "a call of the broker failed, trying again"
	if call == callFolder || call == callMark {
		text = "the helper cannot use its own --state, trying again: nothing is released meanwhile. Make room on its disk, or give it back; nothing has to be restarted"
	}
	h.Logger.Log(ctx, h.troubles.Failed(time.Now(), call, err), text, "call", call, "error", err)
	observe.Tell(h.Observer.Failed, call)
}

// worked notes that a call worked. h.mu is held.
func (h *Helper) worked(call string) {
	if h.troubles.Worked(call) {
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
