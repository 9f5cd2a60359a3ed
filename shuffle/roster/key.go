package roster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/stream/seal"
)

// begun is the suffix of a key's file until its list is written. A key without a list counts as a copy, so a new key
// gets its own name only after that: after a crash in between, the next call finishes, or draws again.
const begun = ".begun"

// A NewKey is a key that is not under its own name yet.
type NewKey struct {
	*seal.Identity
	path string
}

// Draw draws a key that is to be at path. It drops a key that a crash left before its list was written: nobody knows
// that key.
func Draw(path string) (NewKey, error) {
	if err := os.Remove(path + begun); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return NewKey{}, err
	}
	identity, _, err := seal.LoadOrCreateIdentity(path + begun)
	return NewKey{identity, path}, err
}

// Left returns the key that a crash left after its list was written. ok is false if there is none, and if the list is
// of another key, of a file in another place, or has a task.
func (r Roster) Left(path string) (key NewKey, ok bool, err error) {
	identity, err := seal.LoadIdentity(path + begun)
	if errors.Is(err, fs.ErrNotExist) {
		return NewKey{}, false, nil
	}
	if err != nil {
		return NewKey{}, false, err
	}
	key = NewKey{identity, path}
	place, err := key.Place()
	if err != nil {
		return NewKey{}, false, err
	}
	return key, r.Key.Equal(identity.Public()) && r.Place.Same(place) && len(r.Tasks) == 0, nil
}

// Place returns the place of the key's file, which it keeps.
func (k NewKey) Place() (disk.Place, error) { return disk.PlaceOf(k.path + begun) }

// Keep gives the key its own name, once its list is written. When it returns nil no crash undoes that.
func (k NewKey) Keep() error {
	if _, err := os.Stat(k.path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s is there already", k.path))
	}
	if err := os.Rename(k.path+begun, k.path); err != nil {
		return err
	}
	return disk.SyncFolder(filepath.Dir(k.path))
}
