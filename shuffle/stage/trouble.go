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
	of  map[string]*trouble
}

type trouble struct {
	series stream.Trouble
	cause  string
	since  time.Time // of the first failure
	last   time.Time
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
	now := time.Now()
	one := t.of[what]
	if one == nil {
		one = &trouble{since: now}
		t.of[what] = one
	}
	one.cause, one.last = err.Error(), now
	attributes = append([]any{"call", what}, append(attributes, "error", err)...)
	text := "a call of the broker failed, trying again"
	if what == mark.String() || what == marked.String() {
		text = "the stage cannot use its own --state, trying again: nothing is claimed meanwhile. Make room on its disk, or give it back; nothing has to be restarted"
	}
	t.log.Log(ctx, one.series.Level(now, err), text, attributes...)
}

// worked notes that a call worked, and logs it where its failures were.
func (t *troubles) worked(what string) {
	one := t.of[what]
	if one == nil {
		return
	}
	if delete(t.of, what); one.series.Over() {
		text := "the broker answers again"
		if what == mark.String() || what == marked.String() {
			text = "the stage can use its own --state again"
		}
		t.log.Info(text, "call", what)
	}
}

// forget drops the troubles of calls of a phase that is over or abandoned, which are not repeated. It keeps those of
// the calls that keep the lease.
func (t *troubles) forget() {
	for what := range t.of {
		if !strings.HasSuffix(what, " "+stream.Leases.String()) {
			delete(t.of, what)
		}
	}
}

// standing returns the cause of the call that failed last, and the time since when calls fail.
func (t *troubles) standing() (cause string, since time.Time) {
	var last time.Time
	for _, one := range t.of {
		if cause == "" || one.last.After(last) {
			cause, last = one.cause, one.last
		}
		if since.IsZero() || one.since.Before(since) {
			since = one.since
		}
	}
	return cause, since
}
