package stage

import (
	"fmt"
	"time"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
)

// A phase is one part of a round's life. It has no clock, goroutine or network of its own.
type phase interface {
	fmt.Stringer // its action, in words

	// next returns the effects that the phase needs now. It changes nothing, because a failed call is requested again.
	next(now time.Time) effects

	// handle takes the result of the effects and returns the phase that follows, perhaps itself. An error ends the stage,
	// except seal.ErrNotWritten: the broker showed a record that its writer did not write, which decides nothing. Then the
	// phase is unchanged, and its effects are performed again.
	handle(now time.Time, did effects, r result) (phase, error)

	// abandon erases what must not outlive the phase, where the phase does not end by handle.
	abandon()
}

// effects describe one call that a phase needs of the loop, and the conditions under which it is made.
type effects struct {
	call     call
	subject  string                    // of get and put; of latest a pattern
	data     []byte                    // of put, keep and exchanged
	before   uint64                    // of purge
	round    stream.Round              // of mark
	owner    [stream.InstanceSize]byte // of mark: the process that claims
	x        split.Attempt             // of keep, overwrite and exchanged
	prepared split.Prepared            // of prepared
	instance split.Instance            // of exchanged: the helper's process
	until    time.Time                 // of wait, collect and exchanged
	needs    need                      // of the lease
	attempt  *attempt                  // that is open: collect examines reports for it, and Status reports its fill
	drains   bool                      // worth the time of Config.Drain: users were asked to the attempt
}

// A call names an operation of the loop.
type call int

const (
	wait      call = iota + 1 // until a time, or a wake
	get                       // Records.Get
	latest                    // Records.Latest
	put                       // Records.PutOnce
	queued                    // ReportReader.Queue; its failure is passed over
	purge                     // ReportReader.Purge, once the lease is renewed; its failure is passed over
	collect                   // fetch reports, examine some of them, acknowledge those
	marked                    // Marks.Claimed
	mark                      // Marks.Claim
	find                      // Folder.Find
	begin                     // Folder.Begin
	prepared                  // Folder.Prepare
	keep                      // Folder.Release
	overwrite                 // Folder.Drop
	exchanged                 // a message to the helper, and its answer until a time
	stop                      // Run returns nil
)

var callNames = [...]string{wait: "wait", get: "get", latest: "latest", put: "put", queued: "queue", purge: "purge",
	collect: "fetch", marked: "mark", mark: "mark",
	find: "find", begin: "begin", prepared: "prepare", keep: "keep", overwrite: "overwrite", exchanged: "exchange",
	stop: "stop"}

func (c call) String() string { return callNames[c] }

// A need states how far a phase depends on the lease.
type need int

const (
	nothing need = iota
	leased       // the lease; without it the phase is abandoned
	bound        // nothing any more: bytes may have been sent that nobody else can finish
)

// A result holds the outcome of a call.
type result struct {
	message *stream.Message  // of get and latest; nil: not found, which decides nothing
	put     stream.PutResult // of put
	queue   *stream.Queue    // of queued; nil: not known
	marked  stream.Round     // of marked: the highest round that was marked
	ours    bool             // of mark: the mark is ours; of prepared, keep and overwrite: the step was made
	found   *Found           // of find
	woken   bool             // of collect: a record was announced
	answer  []byte           // of exchanged; nil: none came, or nobody listens
}

// A pause alternates between reading and waiting. The zero value reads.
type pause struct{ until time.Time }

func (p *pause) pending() bool { return !p.until.IsZero() }

// rest returns the wait of a phase that needs the lease.
func (p *pause) rest() effects { return effects{call: wait, until: p.until, needs: leased} }

// over ends the pause.
func (p *pause) over() { p.until = time.Time{} }

// stateless phases have nothing to erase.
type stateless struct{}

func (stateless) abandon() {}
