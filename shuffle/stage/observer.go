package stage

import (
	"time"

	"github.com/panlearn/panlearn/stream"
)

// An Observer has functions that the stage calls on events, for metrics. Every field may be nil. Functions are called
// on Run's goroutine and must not block. Nothing here is about one user.
type Observer struct {
	// Report: one message was examined.
	Report func(Reason)
	// Fill: so many users of the planned cohort are in the totals.
	Fill func(users, cohort uint64)
	// Lease: the lease was won or lost.
	Lease func(held bool)
	// Opened: an attempt was opened.
	Opened func(stream.Round, stream.Attempt)
	// Dropped: an attempt died with its totals and key, before any claim.
	Dropped func(stream.Round, stream.Attempt)
	// Released: a round's batch was released; after is the time since its attempt was opened.
	Released func(r stream.Round, users uint64, after time.Duration)
	// Voided: this process put a void batch.
	Voided func(stream.Round)
	// Failed: a call of the broker failed and will be repeated. call is one of put, get, latest, fetch, purge, mark,
	// ack, lease.
	Failed func(call string)
}
