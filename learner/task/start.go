package task

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Start is the snapshot that a task begins with. A task file names its file, as seen from its own folder; a
// declaration has the SHA-256 of the file, and so has a Spec that Load returned.
type Start struct {
	file string
	hash string // "sha256:" and 64 hexadecimal digits; "" before the file was read
	data []byte // the file; nil where only its hash is known
}

const (
	startPrefix = "sha256:"
	maxSnapshot = 256 << 20
)

// Hash returns the SHA-256 of the snapshot's file; false where it has not been read.
func (s *Start) Hash() (out [sha256.Size]byte, known bool) {
	n, err := hex.Decode(out[:], []byte(strings.TrimPrefix(s.hash, startPrefix)))
	return out, s.hash != "" && err == nil && n == len(out)
}

// Data returns the snapshot's file; nil where only its hash is known. The caller must not change it.
func (s *Start) Data() []byte { return s.data }

// UnmarshalText takes the name of a file, or a hash.
func (s *Start) UnmarshalText(text []byte) error {
	rest, hashed := strings.CutPrefix(string(text), startPrefix)
	switch {
	case !hashed && len(text) > 0:
		*s = Start{file: string(text)}
		return nil
	case hashed && len(rest) == 2*sha256.Size && rest == strings.ToLower(rest):
		if _, err := hex.DecodeString(rest); err == nil {
			*s = Start{hash: string(text)}
			return nil
		}
	}
	return errors.New("the file of a snapshot, or sha256: and 64 hexadecimal digits")
}

// MarshalText returns the hash, by which a declaration names a snapshot.
func (s *Start) MarshalText() ([]byte, error) {
	if s.hash == "" {
		return nil, fmt.Errorf("model.start: %s has not been read", shorten(s.file))
	}
	return []byte(s.hash), nil
}

// read reads the file that a task file in the folder names.
func (s *Start) read(folder string) error {
	if s.file == "" {
		return nil
	}
	path := s.file
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxSnapshot {
		err = fmt.Errorf("%d bytes, want at most %d", info.Size(), maxSnapshot)
	}
	if err == nil {
		s.data, err = os.ReadFile(path)
	}
	if err != nil {
		return refuse("model.start", s.file, "a snapshot in JSON or .npz: %v", err)
	}
	sum := sha256.Sum256(s.data)
	s.hash = startPrefix + hex.EncodeToString(sum[:])
	return nil
}
