package statefolder

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// instanceName is the file of a state folder that has its name: a random one, which copies share.
const instanceName = "instance"

// MarksFolder returns where this machine remembers how far state folders were written: panlearn/devices in
// $XDG_STATE_HOME or ~/.local/state, on Windows in %LocalAppData%. It is empty where there is no such place.
func MarksFolder() string {
	base := os.Getenv("XDG_STATE_HOME")
	if home, err := os.UserHomeDir(); base == "" && err == nil {
		base = filepath.Join(home, ".local", "state")
	}
	if runtime.GOOS == "windows" {
		base = os.Getenv("LocalAppData")
	}
	if !filepath.IsAbs(base) {
		return ""
	}
	return filepath.Join(base, "panlearn", "devices")
}

// A marked store notes in the machine's mark how far it is written. The mark follows what is durable, and is not synced
// itself: a machine that loses power may have an older one, which refuses nothing.
type marked struct {
	*filestore.Store
	file *os.File
}

// Write implements participation.Store.
func (m marked) Write(c participation.Change) error {
	if err := m.Store.Write(c); err != nil {
		return err
	}
	return m.put()
}

func (m marked) put() error {
	p := m.Position()
	if _, err := m.file.WriteAt(fmt.Appendf(nil, "%010d %020d\n", p.Generation, p.Size), 0); err != nil {
		return fmt.Errorf("mark of the state folder: %w", err)
	}
	return nil
}

// marked returns the store with the machine's mark. It refuses a store that is behind its mark: a state folder that was
// restored from a copy would draw again for everybody who took part since.
func (c Config) marked(store *filestore.Store) (own participation.Store, closeMark func() error, err error) {
	if c.Marks == "" {
		return store, func() error { return nil }, nil
	}
	instance, err := instanceOf(c.Dir)
	if err == nil {
		err = os.MkdirAll(c.Marks, 0o700)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("mark of the state folder: %w", err)
	}
	path := filepath.Join(c.Marks, instance+"."+string(c.Task))
	var seen filestore.Position
	switch data, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, nil, fmt.Errorf("mark of the state folder: %w", err)
	default:
		// One that cannot be read says nothing: it is not synced, and a machine that lost power may have half of it.
		_, _ = fmt.Sscanf(string(data), "%d %d\n", &seen.Generation, &seen.Size)
	}
	if store.Position().Before(seen) {
		return nil, nil, consent.Refuse("state folder", "an older copy",
			"the newest one that this machine has written: from this one users who took part since "+
				"would take part again, and pay twice. Put the newest back, or take an empty folder for users who are in no round of this task yet; "+
				"where it is certain that nothing was sent since the copy, remove %s", path)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("mark of the state folder: %w", err)
	}
	m := marked{store, file}
	if err := m.put(); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return m, file.Close, nil
}

// instanceOf returns the name of a state folder, which it gives to one that has none.
func instanceOf(dir string) (string, error) {
	path := filepath.Join(dir, instanceName)
	data, err := os.ReadFile(path)
	if err == nil && len(data) == 32 {
		if _, err := hex.DecodeString(string(data)); err == nil {
			return string(data), nil
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails: it ends the process instead
	name := hex.EncodeToString(id[:])
	return name, os.WriteFile(path, []byte(name), 0o600)
}
