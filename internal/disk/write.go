package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Put writes data to an open file, syncs it and closes it.
func Put(f interface {
	io.WriteCloser
	Sync() error
}, data []byte) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// A Syncer holds the calls that make a file and its name durable. Tests make them fail.
type Syncer struct {
	File   func(*os.File) error
	Folder func(dir string) error
}

// Durable is the Syncer of programs.
var Durable = Syncer{File: (*os.File).Sync, Folder: SyncFolder}

// Replace writes a file (mode 0600) in one step, over one that is there, and returns nil only once no crash undoes that.
func (s Syncer) Replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = s.File(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return s.Folder(filepath.Dir(path))
}
