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
	// ErrArchive means that old entries of the ledger are lost or damaged. The state is whole without them, and goes
	// on.
	ErrArchive = errors.New("the archive of the ledger")
	// ErrReadOnly refuses a commit to a store that was opened to be read.
	ErrReadOnly = errors.New("state is open read-only")
	// ErrClosed refuses every use after Close.
	ErrClosed = errors.New("state is closed")
	// ErrFailed means that the store broke underneath. Whether the commit that met the failure is durable is not
	// known: the process must stop, and only a new start that loads the store shows it.
	ErrFailed = errors.New("state store failed")
)

// A Store keeps one checkpoint and its ledger durably. Its methods are safe for concurrent use. A context is
// looked at before work starts; a commit that was begun is not abandoned.
type Store interface {
	// Load returns the committed checkpoint, after checking it and that the newest entries of the ledger lead to its
	// sums, or an error that wraps ErrEmpty. It takes the same time however many entries there are.
	Load(ctx context.Context) (Checkpoint, error)

	// Commit makes next, the entries and what is kept durable, all or nothing, if Next accepts them after the
	// committed checkpoint. Once it has returned nil, no crash undoes it. An error that wraps ErrFailed leaves the
	// outcome open; any other error changed nothing.
	Commit(ctx context.Context, next Checkpoint, entries []Entry, kept ...Kept) error

	// Rows returns what is kept of the newest rounds, in their order and without their models; of all where newest
	// is 0.
	Rows(ctx context.Context, newest int) ([]Kept, error)

	// Model returns the model that is kept of a round; nil where none is.
	Model(ctx context.Context, round uint64) ([]byte, error)

	// Ledger yields all entries in order up to the committed head, and stops after the first error, which wraps
	// ErrArchive where the state can go on all the same. It decodes each entry; Checkpoint.VerifyLedger and ReadLedger
	// check the chain.
	Ledger(ctx context.Context) iter.Seq2[Entry, error]

	// Failed is closed when the store broke, possibly between commits. The owner must then stop its process
	// and make nothing further visible.
	Failed() <-chan struct{}

	// Close releases the store. After a failure it returns that failure, and may hold its lock until the
	// process ends.
	Close() error
}
