package statefolder

import (
	"errors"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A Config names a folder and who uses it.
type Config struct {
	Dir    string // made where it is not there; only its user may read it
	Task   stream.Task
	Policy consent.Policy // the ledger is kept for its totals
	// Ledger holds what users spent, where this process has it open already for another task of Dir; nil: it is opened.
	Ledger *filestore.Ledger
	// Marks is a folder of this machine's, outside of Dir, that remembers how far state folders were written; see
	// MarksFolder. Empty: none does, and a Dir that is put back from a copy is not noticed.
	Marks string
}

// A Folder is a state folder that this process holds.
type Folder struct {
	Store  participation.Store // of the task
	Ledger *filestore.Ledger   // of all tasks
	close  func() error
}

// Open opens the folder, or makes it. It refuses one that another process holds, and with a *consent.RefusedError one
// that has forgotten who took part, or what it cost.
func Open(c Config) (f *Folder, err error) {
	store, err := filestore.Open(filestore.Path(c.Dir, c.Task))
	if err != nil {
		return nil, err
	}
	own, closeMark, err := c.marked(store)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	f = &Folder{Store: own, close: func() error { return errors.Join(closeMark(), store.Close()) }}
	if f.Ledger = c.Ledger; f.Ledger != nil {
		err = c.ledgerLost()
	} else if err = c.ledgerLost(); err == nil {
		f.Ledger, err = filestore.OpenLedger(c.Dir)
	}
	if err == nil {
		err = c.ledgerOlder(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close lets the folder go.
func (f *Folder) Close() error { return f.close() }
