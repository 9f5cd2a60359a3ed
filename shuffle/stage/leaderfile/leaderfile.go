package leaderfile

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
)

// KeyFile is the name of the leader's key in its folder.
const KeyFile = "stage.key"

// Names and suffixes of the other files: of the folder, and of a task.
const (
	rosterFile     = "identity"
	marksSuffix    = ".leader"
	lockSuffix     = ".lock"
	preparedSuffix = ".prepared"
	keySuffix      = ".key"
	shareSuffix    = ".share"
)

const keySize = 32 // of AES-256

// suffixes of the files of an attempt: keys go first.
var suffixes = []string{keySuffix, preparedSuffix, shareSuffix}

// A Folder is a leader's folder. Any number of goroutines and processes may use it.
type Folder struct {
	dir string
	key ed25519.PublicKey
	fs  disk.Syncer
}

var _ stage.Folder = (*Folder)(nil)

// path returns the name of a task's file.
func (f *Folder) path(task stream.Hash, suffix string) string {
	return filepath.Join(f.dir, hex.EncodeToString(task[:])+suffix)
}

// of returns the name of an attempt's file.
func (f *Folder) of(x split.Attempt, suffix string) string {
	at := sha256.Sum256(x.Append(nil))
	return f.path(stream.Hash(x.Task), fmt.Sprintf(".%d.%d.%x%s", x.Round, x.Number, at[:8], suffix))
}

// locked runs do under the lock of a task.
func (f *Folder) locked(task stream.Hash, do func() error) error {
	unlock, err := disk.Lock(f.path(task, lockSuffix))
	if err != nil {
		return fmt.Errorf("leader's folder: lock: %w", err)
	}
	defer func() { _ = unlock() }() // a file that is closed is not locked
	if err := do(); err != nil {
		return fmt.Errorf("leader's folder: %w", err)
	}
	return nil
}

// Begin implements stage.Folder. It also removes what crashes left.
func (f *Folder) Begin(task stream.Hash) error {
	return f.locked(task, func() error {
		m, begun, err := f.marks(task)
		if err != nil {
			return err
		}
		if begun {
			return errors.Join(f.sweep(task, m.LeaderMarks), f.fs.Folder(f.dir)) // which may have failed before
		}
		if err := f.fs.Replace(f.path(task, marksSuffix), m.encode(task)); err != nil {
			return err
		}
		return f.list(task, m.own)
	})
}

// Find implements stage.Folder.
func (f *Folder) Find(task stream.Hash) (out stage.Found, err error) {
	err = f.locked(task, func() error {
		m, begun, err := f.marks(task)
		if err != nil {
			return err
		}
		out.Marks, out.Begun = m.LeaderMarks, begun
		if x := out.Marks.Prepared; x != (split.Attempt{}) {
			if out.Prepared, err = f.prepared(x); err != nil {
				return err
			}
		}
		if x := out.Marks.Released; x != (split.Attempt{}) {
			out.Signed, err = os.ReadFile(f.of(x, shareSuffix))
		}
		return err
	})
	return out, err
}

// Prepare implements stage.Folder. Of the attempt that is prepared it takes the same bytes again, and no others: they are
// a copied process's, with a floor of its own.
func (f *Folder) Prepare(task stream.Hash, p split.Prepared) (ok bool, err error) {
	return f.step(task, p.X(), func(m split.LeaderMarks) (split.LeaderMarks, bool) { return m.Prepare(p.X()) },
		func(now split.LeaderMarks) (bool, error) {
			if now.Prepared == p.X() {
				standing, err := f.prepared(p.X())
				return err == nil && standing != nil && bytes.Equal(standing.Append(nil), p.Append(nil)), err
			}
			key := make([]byte, keySize)
			defer clear(key)
			_, _ = rand.Read(key) // never fails
			sealed, err := encrypt(key, p)
			if err != nil {
				return false, err
			}
			if err := f.fs.Replace(f.of(p.X(), keySuffix), key); err != nil {
				return false, err
			}
			return true, f.fs.Replace(f.of(p.X(), preparedSuffix), sealed)
		})
}

// Release implements stage.Folder. Of the attempt that is released it takes the same Share again, and no other: of a
// helper that signs two, all processes act on one.
func (f *Folder) Release(task stream.Hash, x split.Attempt, signed []byte) (ok bool, err error) {
	return f.step(task, x, func(m split.LeaderMarks) (split.LeaderMarks, bool) { return m.Release(x) },
		func(now split.LeaderMarks) (bool, error) {
			if now.Released == x {
				standing, err := os.ReadFile(f.of(x, shareSuffix))
				return bytes.Equal(standing, signed), err
			}
			return true, f.fs.Replace(f.of(x, shareSuffix), signed)
		})
}

// Drop implements stage.Folder. The key is overwritten before the marks forget the attempt: a crash in between leaves a
// Prepared that cannot be read, which is dropped again.
func (f *Folder) Drop(task stream.Hash, x split.Attempt) (ok bool, err error) {
	return f.step(task, x, func(m split.LeaderMarks) (split.LeaderMarks, bool) { return m.Drop(x) },
		func(split.LeaderMarks) (bool, error) { return true, f.overwrite(f.of(x, keySuffix)) })
}

// step makes one step on the marks for x. If ask allows it, step first does what must be durable before the new marks,
// and then writes them, unless before returns false. Files that the new marks no longer name are removed afterwards,
// and their keys overwritten.
func (f *Folder) step(task stream.Hash, x split.Attempt, ask func(split.LeaderMarks) (split.LeaderMarks, bool),
	before func(now split.LeaderMarks) (bool, error)) (ok bool, err error) {
	err = f.locked(task, func() error {
		now, begun, err := f.marks(task)
		if err != nil {
			return err
		}
		if !begun || stream.Hash(x.Task) != task {
			return errors.New("a step of a task that was not begun here")
		}
		next, allowed := ask(now.LeaderMarks)
		if !allowed {
			return nil
		}
		if same, err := before(now.LeaderMarks); err != nil || !same {
			return err
		}
		now.LeaderMarks = next
		if err := f.fs.Replace(f.path(task, marksSuffix), now.encode(task)); err != nil {
			return err
		}
		ok = true
		_ = f.sweep(task, next) // Begin tries again
		return nil
	})
	return ok, err
}

// sweep overwrites and removes the files of attempts that the marks do not name: files of an earlier attempt, and files
// that a crash left of an attempt that was never marked. Such a share beside the batch of another attempt would be a
// second release.
func (f *Folder) sweep(task stream.Hash, m split.LeaderMarks) error {
	kept := map[string]bool{}
	for _, x := range []split.Attempt{m.Prepared, m.Released} {
		for _, suffix := range suffixes {
			kept[f.of(x, suffix)] = true
		}
	}
	var failed error
	for _, suffix := range suffixes {
		list, err := filepath.Glob(f.path(task, ".*"+suffix))
		failed = errors.Join(failed, err)
		for _, path := range list {
			if kept[path] {
				continue
			}
			if suffix == keySuffix {
				failed = errors.Join(failed, f.overwrite(path))
			}
			failed = errors.Join(failed, os.Remove(path))
		}
	}
	return failed
}

// prepared reads the Prepared of an attempt, nil where its key is overwritten.
func (f *Folder) prepared(x split.Attempt) (*split.Prepared, error) {
	key, err := os.ReadFile(f.of(x, keySuffix))
	if err != nil {
		return nil, err
	}
	defer clear(key)
	if string(key) == string(make([]byte, keySize)) {
		return nil, nil
	}
	sealed, err := os.ReadFile(f.of(x, preparedSuffix))
	if err != nil {
		return nil, err
	}
	p, err := decrypt(key, sealed)
	if err != nil || p.X() != x {
		return nil, fmt.Errorf("%s is damaged", f.of(x, preparedSuffix))
	}
	return &p, nil
}

// overwrite writes zeros over a key where it lies, and syncs them. A key that is not there is overwritten.
func (f *Folder) overwrite(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, keySize))
	if err == nil {
		err = f.fs.File(file)
	}
	return errors.Join(err, file.Close())
}

func encrypt(key []byte, p split.Prepared) ([]byte, error) {
	aead, err := sealer(key)
	if err != nil {
		return nil, err
	}
	plain := p.Append(nil)
	defer clear(plain)
	return aead.Seal(nil, nil, plain, nil), nil
}

func decrypt(key, sealed []byte) (split.Prepared, error) {
	aead, err := sealer(key)
	if err != nil {
		return split.Prepared{}, err
	}
	plain, err := aead.Open(nil, nil, sealed, nil)
	if err != nil {
		return split.Prepared{}, err
	}
	return split.DecodePrepared(plain) // whose share lies in plain
}

func sealer(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
