package pebblestore

import (
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
)

func TestContractInMemory(t *testing.T) {
	newDisk := func(*testing.T) storetest.Disk {
		fs := vfs.NewMem()
		return func() (state.Store, error) { return opened(Open(folder, Options{fs: fs, Tail: shortTail})) }
	}
	storetest.Run(t, newDisk)
	storetest.RunHistory(t, newDisk)
}

// TestContractOnDisk runs the same contract on the operating system's files, with their locks.
func TestContractOnDisk(t *testing.T) {
	newDisk := func(t *testing.T) storetest.Disk {
		dir := filepath.Join(t.TempDir(), "state")
		return func() (state.Store, error) { return opened(Open(dir, Options{Tail: shortTail})) }
	}
	storetest.Run(t, newDisk)
	if longtest.Run(t, "any history on the operating system's files, 10 s") {
		storetest.RunHistory(t, newDisk)
	}
}

// opened keeps a nil *Store from becoming an interface that is not nil.
func opened(s *Store, err error) (state.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
