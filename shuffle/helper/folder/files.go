package folder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/panlearn/panlearn/internal/disk"
)

// Names in the folder.
const (
	keyFile    = "identity.pem"
	rosterFile = "identity"
	lockFile   = "lock"
	markPrefix = "mark."
	temporary  = ".new"
)

// files are the operations on a folder's files. Tests stop before any of them.
type files struct {
	dir string
	// before, if not nil, is called with an operation's name before the operation, which fails with the error that it
	// returns.
	before func(operation string) error
}

func (f files) ask(operation string) error {
	if f.before == nil {
		return nil
	}
	return f.before(operation)
}

func (f files) path(name string) string { return filepath.Join(f.dir, name) }

// replace replaces a file, and returns nil only once no crash undoes that.
func (f files) replace(name string, content []byte) error {
	if err := f.ask("create"); err != nil {
		return err
	}
	file, err := os.CreateTemp(f.dir, name+".*"+temporary) // mode 0600
	if err != nil {
		return err
	}
	if err = f.ask("write"); err == nil {
		_, err = file.Write(content)
	}
	if err == nil {
		err = f.ask("sync")
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = f.ask("rename")
	}
	if err == nil {
		err = os.Rename(file.Name(), f.path(name))
	}
	if err != nil {
		if f.ask("remove") == nil {
			_ = os.Remove(file.Name()) // of a process that dies it stays, and tidy removes it
		}
		return err
	}
	return f.syncFolder()
}

func (f files) syncFolder() error {
	if err := f.ask("sync folder"); err != nil {
		return err
	}
	return disk.SyncFolder(f.dir)
}

// settle makes a file that was found durable: the process that wrote it may have died before it did.
func (f files) settle(name string) error {
	if err := f.ask("settle"); err != nil {
		return err
	}
	file, err := os.OpenFile(f.path(name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	return f.syncFolder()
}

// tidy removes files that a process that died left half written.
func (f files) tidy() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), temporary) {
			if err := os.Remove(f.path(e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
