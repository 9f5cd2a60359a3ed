package leaderfile

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/shuffle/roster"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
)

// rosterTitle begins the list by which key, folder and marks know each other.
const rosterTitle = "panlearn leader identity v1\n"

// Create makes a folder (mode 0700, with parents) with a new key in KeyFile, or finds one that was made before, and
// returns its public key. It refuses, with stage.ErrFolder, one that has parts of a folder alone.
func Create(dir string) (key ed25519.PublicKey, made bool, err error) {
	f, err := at(dir)
	if err != nil {
		return nil, false, err
	}
	err = f.guarded(func() error { key, made, err = f.create(); return err })
	if err != nil {
		return nil, false, fmt.Errorf("leader's folder: %w", err)
	}
	return key, made, nil
}

// create makes key and list, in the steps of roster.NewKey, or finds them. What a crash left it finishes.
func (f *Folder) create() (key ed25519.PublicKey, made bool, err error) {
	path := f.named(KeyFile)
	switch _, err := os.Stat(path); {
	case err == nil:
		r, err := f.roster()
		if err != nil {
			return nil, false, err
		}
		identity, err := seal.LoadIdentity(path)
		if err != nil {
			return nil, false, err
		}
		return r.Key, false, f.belongsTo(identity.Public())
	case !errors.Is(err, fs.ErrNotExist):
		return nil, false, err
	}
	if _, err := os.Stat(f.named(rosterFile)); err == nil {
		r, err := f.roster()
		if err != nil {
			return nil, false, err
		}
		left, ok, err := r.Left(path)
		if err != nil {
			return nil, false, err
		}
		if ok {
			return r.Key, true, left.Keep()
		}
	}
	if err := f.hasNone(); err != nil {
		return nil, false, err
	}
	drawn, err := roster.Draw(path)
	if err != nil {
		return nil, false, err
	}
	if err := f.fs.Replace(f.named(rosterFile), roster.New(drawn.Public()).Encode(rosterTitle)); err != nil {
		return nil, false, err
	}
	return drawn.Public(), true, drawn.Keep()
}

// Make makes the folder of a key that was just drawn and is kept elsewhere, or finds the one that was made for it.
func Make(dir string, key ed25519.PublicKey) error {
	f, err := at(dir)
	if err != nil {
		return err
	}
	if err := f.guarded(func() error {
		if _, err := os.Stat(f.named(rosterFile)); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, f.belongsTo(key))
		}
		if err := f.hasNone(); err != nil {
			return err
		}
		return f.fs.Replace(f.named(rosterFile), roster.New(key).Encode(rosterTitle))
	}); err != nil {
		return fmt.Errorf("leader's folder: %w", err)
	}
	return nil
}

// Open returns the folder that was made for a key. It refuses, with stage.ErrFolder, every other one: a key that was
// copied without its folder could release a round again.
func Open(dir string, key ed25519.PublicKey) (*Folder, error) {
	f, err := at(dir)
	if err != nil {
		return nil, err
	}
	f.key = key
	if _, err := f.roster(); err != nil {
		return nil, fmt.Errorf("leader's folder: %w", err)
	}
	return f, nil
}

// at returns a folder of which nothing was read, and makes it where there is none.
func at(dir string) (*Folder, error) {
	if dir == "" {
		return nil, errors.New("leader's folder: the name is empty, want a folder")
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = disk.MakeFolder(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("leader's folder: %w", err)
	}
	return &Folder{dir: dir, fs: disk.Durable}, nil
}

func (f *Folder) named(name string) string { return filepath.Join(f.dir, name) }

// guarded runs do under the lock of the list. It may be called with a task's lock held; a task's lock must not be taken
// in do.
func (f *Folder) guarded(do func() error) error {
	unlock, err := disk.Lock(f.named(rosterFile + lockSuffix))
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	defer func() { _ = unlock() }() // a file that is closed is not locked
	return do()
}

// hasNone refuses to make a list beside marks that another one listed.
func (f *Folder) hasNone() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == rosterFile || strings.HasSuffix(e.Name(), marksSuffix) {
			return stage.Lacking(fmt.Sprintf("%s has %s without what was made with it", f.dir, e.Name()))
		}
	}
	return nil
}

// roster reads the list, and refuses one that is not of the folder's key.
func (f *Folder) roster() (roster.Roster, error) {
	data, err := os.ReadFile(f.named(rosterFile))
	if errors.Is(err, fs.ErrNotExist) {
		return roster.Roster{}, stage.Lacking(fmt.Sprintf("%s has no file %s, which is made with the key: the key was copied without "+
			"its folder, or made by ingest keygen FILE", f.dir, rosterFile))
	}
	if err != nil {
		return roster.Roster{}, err
	}
	r, ok := roster.Decode(rosterTitle, data)
	switch {
	case !ok:
		return roster.Roster{}, stage.Lacking(f.named(rosterFile) + " is damaged, or was written by another version of panlearn, which reads it")
	case f.key != nil && !f.key.Equal(r.Key):
		return roster.Roster{}, stage.Lacking(fmt.Sprintf("%s is the folder of the key %x, the stage has %x", f.dir,
			[]byte(r.Key),
			[]byte(f.key)))
	}
	return r, nil
}

// belongsTo checks that the list is of a key.
func (f *Folder) belongsTo(key ed25519.PublicKey) error {
	_, err := (&Folder{dir: f.dir, key: key}).roster()
	return err
}

// list adds a task to the list of tasks. Its marks must be written already.
func (f *Folder) list(task stream.Hash, own roster.ID) error {
	return f.guarded(func() error {
		r, err := f.roster()
		if err != nil {
			return err
		}
		return f.fs.Replace(f.named(rosterFile), r.With(task, own).Encode(rosterTitle))
	})
}
