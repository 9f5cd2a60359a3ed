package intrusion

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Loot is a copy of folders: what a thief has who takes them at one moment, or what a crash leaves.
type loot struct {
	when  string
	files map[string][]byte // by path below the copied folder
}

// steal copies a folder while others write in it. Files may be cut, or gone before they are read; both are what a
// thief may find, too.
func steal(when, dir string) loot {
	l := loot{when: when, files: map[string][]byte{}}
	must(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name, relErr := filepath.Rel(dir, path)
		l.files[name] = data
		return errors.Join(err, relErr)
	}))
	return l
}

// bytes returns the total size of the loot.
func (l loot) bytes() (n int) {
	for _, data := range l.files {
		n += len(data)
	}
	return n
}
