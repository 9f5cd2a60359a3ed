package state

import (
	"context"
	"errors"
	"iter"
)

var (
	// ErrEmpty means that nothing was committed yet.
	ErrEmpty = errors.New("state is empty")
	// ErrLocked means that another process, or another handle in this one, has the store open. Commands that only read
	// then ask the owner over its control socket.
	ErrLocked = errors.New("state is locked by another owner")
	// ErrArchive means that old entries of the ledger are lost or damaged. The state is complete without them, and remains
	// usable.
	ErrArchive = errors.New("the archive of the ledger")
	// ErrReadOnly refuses a commit to a store that was opened to be read.
	ErrReadOnly = errors.New("state is open read-only")
	// ErrClosed refuses every use after Close.
	ErrClosed = errors.New("state is closed")
	// ErrFailed means that the underlying store failed. Whether the failed commit is durable is unknown: the process must
	// stop, and only a new Load shows it.
	ErrFailed = errors.New("state store failed")
)

// A Store keeps one checkpoint and its ledger durably. Its methods are safe for concurrent use. A context is checked
// before work starts; a commit that has begun is not abandoned.
type Store interface {
	// Load returns the committed checkpoint, or an error that wraps ErrEmpty. It checks the checkpoint, and that the
	// newest entries of the ledger lead to its sums. Its time does not grow with the number of entries.
	Load(ctx context.Context) (Checkpoint, error)

	// Commit makes next, entries and kept durable, all or nothing, if Next accepts them after the committed checkpoint.
	// Once it has returned nil, no crash undoes it. After an error that wraps ErrFailed the outcome is unknown; after any
	// other error nothing has changed.
	Commit(ctx context.Context, next Checkpoint, entries []Entry, kept ...Kept) error

	// Rows returns the Kept of the newest rounds, oldest first and without models; of all rounds if newest is 0.
	Rows(ctx context.Context, newest int) ([]Kept, error)

	// Model returns the kept model of a round; nil if there is none.
	Model(ctx context.Context, round uint64) ([]byte, error)

	// Ledger yields all entries in order up to the committed head, and stops after the first error, which wraps ErrArchive
	// if the state remains usable. It decodes each entry; Checkpoint.VerifyLedger and ReadLedger check the chain.
	Ledger(ctx context.Context) iter.Seq2[Entry, error]

	// Failed is closed when the store broke, possibly between commits. The owner must then stop its process
	// and make nothing further visible.
	Failed() <-chan struct{}

	// Close releases the store. After a failure it returns that failure, and may hold its lock until the
	// process ends.
	Close() error
}
