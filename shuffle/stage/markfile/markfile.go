package markfile

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/stream"
)

const (
	suffix     = ".claimed"
	lockSuffix = ".lock"
)

// Marks is a folder of marks. Any number of goroutines and processes may use it, and others of the same folder.
type Marks struct {
	dir string
	fs  disk.Syncer
}

// Open creates the folder (mode 0700) if it is missing, and refuses one in which it cannot write.
func Open(dir string) (*Marks, error) {
	if dir == "" {
		return nil, errors.New("folder of marks: the name is empty, want a folder")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("folder of marks: %w", err)
	}
	if err := disk.MakeFolder(dir); err != nil {
		return nil, fmt.Errorf("folder of marks: %w", err)
	}
	probe, err := os.CreateTemp(dir, "probe*.new")
	if err != nil {
		return nil, fmt.Errorf("folder of marks: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, fmt.Errorf("folder of marks: %w", err)
	}
	return &Marks{dir: dir, fs: disk.Durable}, nil
}

func (m *Marks) path(task stream.Hash) string {
	return filepath.Join(m.dir, hex.EncodeToString(task[:])+suffix)
}

// Claimed implements stage.Marks. It waits for the task's lock too: Windows replaces no file that somebody reads.
func (m *Marks) Claimed(task stream.Hash) (stream.Round, error) {
	unlock, err := m.lock(task)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unlock() }()
	standing, err := m.read(task)
	return standing.round, err
}

func (m *Marks) lock(task stream.Hash) (unlock func() error, err error) {
	if unlock, err = disk.Lock(m.path(task) + lockSuffix); err != nil {
		return nil, fmt.Errorf("lock of a mark: %w", err)
	}
	return unlock, nil
}

func (m *Marks) read(task stream.Hash) (mark, error) {
	data, err := os.ReadFile(m.path(task))
	if errors.Is(err, fs.ErrNotExist) {
		return mark{}, nil
	}
	if err != nil {
		return mark{}, err
	}
	standing, ok := decode(task, string(data))
	if !ok {
		return mark{},
			fmt.Errorf(
				"%s is damaged, or was written by another version of panlearn, which reads it: it may not be removed before the task has ended, because the stage would then open rounds again that it has released",
				m.path(task))
	}
	return standing, nil
}

// Claim implements stage.Marks. A mark never falls, whichever process writes: it is read and replaced under the task's
// lock, which Claim waits for.
func (m *Marks) Claim(task stream.Hash, round stream.Round, instance [stream.InstanceSize]byte) (ours bool, err error) {
	unlock, err := m.lock(task)
	if err != nil {
		return false, err
	}
	defer func() { _ = unlock() }() // a file that is closed is not locked
	standing, err := m.read(task)
	switch {
	case err != nil:
		return false, err
	case standing.round > round, standing.round == round && standing.instance != instance:
		return false, nil
	case standing.round == round:
		return true, m.fs.Folder(m.dir) // it may have failed before
	}
	err = m.fs.Replace(m.path(task), []byte(mark{round: round, instance: instance}.encode(task)))
	return err == nil, err
}
