package stage

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// troubles are the calls of the broker that fail, by name and stream. One that works says nothing of another: reads
// are answered beside a write that a full disk swallows, and one stream beside another.
type troubles struct {
	log *slog.Logger
	of  stream.Troubles
}

// aLook and aWrite are the calls that keep the lease.
var (
	aLook  = about("get", stream.Leases)
	aWrite = about("swap", stream.Leases)
)

func about(call string, s stream.Stream) string { return call + " " + s.String() }

// about names a call, and the stream where it has one.
func (e effects) about() string {
	if _, s, err := stream.StreamOf(e.subject); err == nil {
		return about(e.call.String(), s)
	}
	return e.call.String()
}

// failed notes that a call failed, and logs it where that is due.
func (t *troubles) failed(ctx context.Context, what string, err error, attributes ...any) {
	level := t.of.Failed(time.Now(), what, err)
	attributes = append([]any{"call", what}, append(attributes, "error", err)...)
	text := "a call of the broker failed, trying again"
	if what == mark.String() || what == marked.String() {
		text = "the stage cannot use its own --state, trying again: nothing is claimed meanwhile. Make room on its disk, or give it back; nothing has to be restarted"
	}
	t.log.Log(ctx, level, text, attributes...)
}

// worked notes that a call worked, and logs it where its failures were.
func (t *troubles) worked(what string) {
	if !t.of.Worked(what) {
		return
	}
	text := "the broker answers again"
	if what == mark.String() || what == marked.String() {
		text = "the stage can use its own --state again"
	}
	t.log.Info(text, "call", what)
}

// forget drops the faults of calls of a phase that is over or abandoned, because those calls are not repeated. It keeps
// the faults of calls for the lease.
func (t *troubles) forget() {
	t.of.Forget(func(what string) bool { return !strings.HasSuffix(what, " "+stream.Leases.String()) })
}
