package filestore

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A Behind is a task of a state folder in which more events took part than the folder's ledger knows.
type Behind struct {
	Path            string // of the participations
	Standing, Taken uint64 // events by the ledger, and by the participations
}

// Behind compares the ledger with all participations of its state folder; own holds the participations of task, which
// this process keeps open. A charge is durable before its participation is, so a ledger of the same age knows of at
// least as many. Tasks that another process holds were compared when that process began, and a task whose charge is
// marked Lost is charged for everything it may have cost.
func (l *Ledger) Behind(task stream.Task, own participation.Store) (behind []Behind, err error) {
	dir := filepath.Dir(l.path)
	paths, err := filepath.Glob(Path(dir, "*"))
	if err != nil {
		return nil, err
	}
	var known []ledger.Charge
	for account, err := range l.Accounts() {
		if err != nil {
			return nil, err
		}
		if account.Key == ledger.Everyone {
			known = account.Charges
		}
		break // Everyone comes first
	}
	for _, path := range paths {
		hash, taken, err := took(path, own, path == Path(dir, task))
		if err != nil {
			return nil, err
		}
		b := Behind{Path: path, Taken: taken}
		if i := ledger.Index(known, hash); i >= 0 {
			if b.Standing = known[i].Standing; known[i].Lost {
				continue
			}
		}
		if b.Standing < taken {
			behind = append(behind, b)
		}
	}
	return behind, nil
}

// took returns the task of some participations, and how many events took part; none where another process holds them.
func took(path string, own participation.Store, isOwn bool) (task stream.Hash, events uint64, err error) {
	if counted, ok := own.(interface{ Taken() uint64 }); ok && isOwn {
		pin, _, err := own.Pin()
		return pin.Task, counted.Taken(), err
	}
	if names, err := os.ReadDir(path); err != nil || len(names) == 0 {
		return task, 0, err
	}
	store, err := Open(path)
	if errors.Is(err, disk.ErrHeld) {
		return task, 0, nil
	}
	if err != nil {
		return task, 0, err
	}
	pin, _, err := store.Pin()
	return pin.Task, store.Taken(), errors.Join(err, store.Close())
}
