package stage

import (
	"time"

	"github.com/panlearn/panlearn/stream"
)

// footing says what a phase needs of the lease.
type footing int

const (
	free   footing = iota // nothing
	leased                // the lease; without it the phase is abandoned
	bound                 // nothing any more: bytes may have been sent that nobody else can finish
)

// verb is what a step asks of the broker.
type verb int

const (
	wait   verb = iota + 1 // until a time, or a wake
	get                    // Records.Get
	latest                 // Records.Latest
	put                    // Records.PutOnce
	fetch                  // ReportReader.Fetch, examine each, acknowledge
	purge                  // ReportReader.Purge; its failure is passed over
)

var verbNames = [...]string{wait: "wait", get: "get", latest: "latest", put: "put", fetch: "fetch", purge: "purge"}

func (v verb) String() string { return verbNames[v] }

// A step is one thing to do. A step that failed is asked for again: every one is safe to repeat.
type step struct {
	verb    verb
	subject string // or pattern
	data    []byte
	max     int       // of fetch
	until   time.Time // of wait and fetch
}

// A result is what came of a step.
type result struct {
	message *stream.Message  // of get and latest; nil: not found, which decides nothing
	put     stream.PutResult // of put
}

// A phase is a part of a round's life. next says what to do and changes nothing; took is told what came of it and
// answers the phase that follows, perhaps itself. An error ends the stage. abandon erases what must not outlive the
// phase; it is called where the phase did not end by took.
type phase interface {
	String() string
	footing() footing
	next(now time.Time) step
	took(now time.Time, s step, r result) (phase, error)
	abandon()
}

// A taker is a phase that fetches reports. examine is called for each, one after the other; false says that no more are
// wanted, and that this one was not looked at.
type taker interface {
	phase
	examine(m *stream.Message) (more bool)
}

// pausing alternates between asking and waiting.
type pausing struct{ until time.Time }

func (p *pausing) pending() bool { return !p.until.IsZero() }

func (p *pausing) wait() step { return step{verb: wait, until: p.until} }

// stateless phases have nothing to erase.
type stateless struct{}

func (stateless) abandon() {}
