package markfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
)

const (
	suffix    = ".claimed"
	temporary = ".new"
	domain    = "panlearn claimed round v1\x00"
)

// Marks is a folder of marks. It is used by one goroutine at a time.
type Marks struct {
	dir string
}

var _ stage.Marks = (*Marks)(nil)

// Open creates the folder (mode 0700) if it is missing, and refuses one in which it cannot write.
func Open(dir string) (*Marks, error) {
	if dir == "" {
		return nil, errors.New("folder of marks: the name is empty, want a folder")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("folder of marks: %w", err)
	}
	if err := makeFolder(dir); err != nil {
		return nil, fmt.Errorf("folder of marks: %w", err)
	}
	probe, err := os.CreateTemp(dir, "probe*"+temporary)
	if err != nil {
		return nil, fmt.Errorf("folder of marks: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, fmt.Errorf("folder of marks: %w", err)
	}
	return &Marks{dir: dir}, nil
}

// makeFolder makes the folder and syncs every folder that got a new entry.
func makeFolder(dir string) error {
	var changed []string
	for p := dir; p != filepath.Dir(p); p = filepath.Dir(p) {
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		changed = append(changed, filepath.Dir(p))
	}
	err := os.MkdirAll(dir, 0o700)
	for _, p := range changed {
		err = errors.Join(err, syncFolder(p))
	}
	return err
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (m *Marks) path(task stream.Hash) string {
	return filepath.Join(m.dir, hex.EncodeToString(task[:])+suffix)
}

// Claimed implements stage.Marks.
func (m *Marks) Claimed(task stream.Hash) (uint64, error) {
	data, err := os.ReadFile(m.path(task))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	number, _, _ := strings.Cut(string(data), " ")
	round, err := strconv.ParseUint(number, 10, 64)
	if err != nil || string(data) != encode(task, round) {
		return 0, fmt.Errorf("%s is damaged: it may not be removed before the task has ended, because the stage would then open rounds again that it has released",
			m.path(task))
	}
	return round, nil
}

// encode is the round in decimal, a space, and in hexadecimal the SHA-256 of domain, task hash and round.
func encode(task stream.Hash, round uint64) string {
	number := strconv.FormatUint(round, 10)
	sum := sha256.Sum256([]byte(domain + string(task[:]) + number))
	return number + " " + hex.EncodeToString(sum[:]) + "\n"
}

// Claim implements stage.Marks. A mark never falls.
func (m *Marks) Claim(task stream.Hash, round uint64) error {
	standing, err := m.Claimed(task)
	if err != nil {
		return err
	}
	if standing >= round {
		return syncFolder(m.dir) // whoever wrote it may have died before
	}
	path := m.path(task)
	if err := write(path+temporary, encode(task, round)); err != nil {
		return err
	}
	if err := os.Rename(path+temporary, path); err != nil {
		return err
	}
	return syncFolder(m.dir)
}

func write(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
