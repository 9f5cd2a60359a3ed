package folder

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/shuffle/roster"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
)

// ErrOlder means that a folder is not as this identity left it: files of different times are in it, or one was lost.
// The helper may have released what the folder does not know, so that it never takes part in the task again.
var ErrOlder = errors.New("it is not as it was left")

// Older returns an error that wraps ErrOlder: why the folder is not as it was left, and then what helps.
func Older(format string, args ...any) error {
	return fmt.Errorf("%w: %s. A task needs a new identity, hence a new task", ErrOlder, fmt.Sprintf(format, args...))
}

// A Folder is a helper's folder, held by this process. Its methods may be called from any goroutine.
type Folder struct {
	files
	key    *seal.Identity
	unlock func() error

	mu      sync.Mutex // guards all below, and the files
	roster  roster.Roster
	settled map[stream.Hash]bool // the mark on the disk is known to be durable
}

// Create makes a folder with a new identity, or finds one that was made before, and returns its public key. It refuses
// a folder that has parts of one alone.
func Create(dir string) (key ed25519.PublicKey, made bool, err error) {
	if dir == "" {
		return nil, false, errors.New("helper's folder: the name is empty, want a folder")
	}
	if err := disk.MakeFolder(dir); err != nil {
		return nil, false, fmt.Errorf("helper's folder: %w", err)
	}
	if key, made, err = (files{dir: dir}).create(); err != nil {
		return nil, false, fmt.Errorf("helper's folder: %w", err)
	}
	return key, made, nil
}

// create makes key and list, in the steps of roster.NewKey, or finds them, also in a folder that is held. What a crash
// left it finishes.
func (f files) create() (key ed25519.PublicKey, made bool, err error) {
	if r, err := f.whole(); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return r.Key, false, err
	}
	unlock, err := f.lock(time.Second)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = unlock() }()
	if r, err := f.whole(); err == nil { // made meanwhile
		return r.Key, false, nil
	}
	r, err := f.readRoster()
	switch {
	case err == nil:
		left, ok, err := r.Left(f.path(keyFile))
		if err != nil {
			return nil, false, err
		}
		if !ok {
			return nil, false, fmt.Errorf("%w: %s has %s and no %s: name an empty folder, for a new identity", ErrOlder, f.dir,
				rosterFile, keyFile)
		}
		return r.Key, true, left.Keep()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, false, err
	}
	if err := f.empty(); err != nil {
		return nil, false, err
	}
	drawn, err := roster.Draw(f.path(keyFile))
	if err != nil {
		return nil, false, err
	}
	r = roster.New(drawn.Public())
	if r.Place, err = drawn.Place(); err != nil {
		return nil, false, err
	}
	if err := f.replace(rosterFile, r.Encode(rosterTitle)); err != nil {
		return nil, false, err
	}
	return r.Key, true, drawn.Keep()
}

// whole returns the list of a folder that has its key.
func (f files) whole() (roster.Roster, error) {
	if _, err := os.Stat(f.path(keyFile)); err != nil {
		return roster.Roster{}, err
	}
	return f.readRoster()
}

// empty refuses a folder that has parts of one.
func (f files) empty() error {
	left, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, e := range left {
		if e.Name() == keyFile || strings.HasPrefix(e.Name(), markPrefix) && !strings.HasSuffix(e.Name(), temporary) {
			return fmt.Errorf("%s has %s and no %s: name an empty folder, for a new identity", f.dir, e.Name(), rosterFile)
		}
	}
	return nil
}

func (f files) lock(wait time.Duration) (unlock func() error, err error) {
	unlock, err = disk.LockWithin(f.path(lockFile), wait)
	if errors.Is(err, disk.ErrHeld) {
		return nil, fmt.Errorf("%s: another helper works with it, and one identity has one process: %w", f.dir, err)
	}
	return unlock, err
}

func (f files) readRoster() (roster.Roster, error) {
	data, err := os.ReadFile(f.path(rosterFile))
	if err != nil {
		return roster.Roster{}, err
	}
	r, ok := roster.Decode(rosterTitle, data)
	if !ok {
		return roster.Roster{}, Older("%s is damaged, or was written by another version of panlearn, which reads it",
			f.path(rosterFile))
	}
	return r, nil
}

// Open takes a folder that Create made, for this process alone until Close; another that has it is waited for a while.
// Errors wrap fs.ErrNotExist where there is none, disk.ErrHeld, or ErrOlder.
func Open(dir string, wait time.Duration) (*Folder, error) {
	f := &Folder{files: files{dir: dir}, settled: map[stream.Hash]bool{}}
	if err := f.open(wait); err != nil {
		return nil, fmt.Errorf("helper's folder: %w", err)
	}
	return f, nil
}

func (f *Folder) open(wait time.Duration) error {
	info, err := os.Stat(f.dir)
	if err != nil {
		return fmt.Errorf("%w: make it with ingest keygen helper", err)
	}
	if !info.IsDir() || disk.Shared(info) {
		return fmt.Errorf("%s has mode %v: want a folder of its owner alone: run chmod 700 %[1]s", f.dir, info.Mode())
	}
	if _, err := f.whole(); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: make it with ingest keygen helper", err)
	}
	if f.unlock, err = f.lock(wait); err != nil {
		return err
	}
	if err := f.load(); err != nil {
		return errors.Join(err, f.unlock())
	}
	return nil
}

func (f *Folder) load() (err error) {
	if err := f.tidy(); err != nil {
		return err
	}
	if f.roster, err = f.readRoster(); err != nil {
		return err
	}
	if f.key, err = seal.LoadIdentity(f.path(keyFile)); err != nil {
		return err
	}
	if !f.key.Public().Equal(f.roster.Key) {
		return Older("%s has the key %x, %s names %x", keyFile, []byte(f.key.Public()), rosterFile, []byte(f.roster.Key))
	}
	place, err := disk.PlaceOf(f.path(keyFile))
	if err != nil {
		return err
	}
	if !place.Same(f.roster.Place) {
		return fmt.Errorf("%w: %s is %v here, and was %v when the folder was made: the folder is a copy. Run the helper "+
			"where the folder was made, and remove the copy", ErrOlder, keyFile, place, f.roster.Place)
	}
	return f.settle(rosterFile)
}

// Close gives the folder to the next process.
func (f *Folder) Close() error { return f.unlock() }

// Identity returns the helper's key.
func (f *Folder) Identity() *seal.Identity { return f.key }

func markName(task stream.Hash) string { return markPrefix + hex.EncodeToString(task[:]) }

// Mark returns what the helper released last of a task, and whether it ever joined it. The zero mark means no release.
func (f *Folder) Mark(task stream.Hash) (m split.HelperMark, joined bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	standing, joined, err := f.read(task)
	return standing.HelperMark, joined, err
}

// read returns the mark of a task, whether the task is listed, and an error where the two do not belong together.
func (f *Folder) read(task stream.Hash) (standing mark, listed bool, err error) {
	fails := func(why string) (mark, bool, error) {
		return mark{}, false, fmt.Errorf("helper's folder: %w", Older("%s %s", f.path(markName(task)), why))
	}
	own, listed := f.roster.Tasks[task]
	data, err := os.ReadFile(f.path(markName(task)))
	switch {
	case errors.Is(err, fs.ErrNotExist) && listed:
		return fails("is missing, and its task was joined before")
	case errors.Is(err, fs.ErrNotExist):
		return mark{folder: f.roster.Folder, own: roster.NewID(), task: task}, false, nil
	case err != nil:
		return mark{}, false, fmt.Errorf("helper's folder: %w", err)
	}
	standing, ok := decodeMark(data)
	switch {
	case !ok || standing.task != task:
		return fails("is damaged, or was written by another version of panlearn, which reads it")
	case standing.folder != f.roster.Folder:
		return fails("is of another folder")
	case listed && standing.own != own:
		return fails("is not the one that was made for its task")
	case !listed && standing.Signed != nil:
		return fails("has a release, and the list of tasks is older than it")
	}
	if listed && !f.settled[task] {
		if err := f.settle(markName(task)); err != nil {
			return mark{}, false, fmt.Errorf("helper's folder: %w", err)
		}
		f.settled[task] = true
	}
	return standing, listed, nil
}

// Knows reports whether a process joined from this folder.
func (f *Folder) Knows(process split.Instance) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.roster.Knows(roster.ID(process))
}

// Join lists a task and the process, before the first Join of it is put. When it returns nil no crash undoes that. It
// may be called again.
func (f *Folder) Join(task stream.Hash, process split.Instance) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	standing, listed, err := f.read(task)
	if err != nil || listed && f.roster.Knows(roster.ID(process)) {
		return err
	}
	if !listed {
		if err := f.replace(markName(task), standing.encode()); err != nil {
			return fmt.Errorf("helper's folder: a mark of a new task: %w", err)
		}
	}
	r := f.roster.With(task, standing.own).By(roster.ID(process))
	if err := f.replace(rosterFile, r.Encode(rosterTitle)); err != nil {
		return fmt.Errorf("helper's folder: list a new task: %w", err)
	}
	f.roster, f.settled[task] = r, true
	return nil
}

// Release stores the signed Share of an attempt, in one step: it does not change a mark of a later round, or of this
// round and another attempt. It returns the mark in the folder afterwards, which shows whether the Share was stored,
// and no crash undoes that mark. After an error nothing is known: call Release again before anything is sent.
func (f *Folder) Release(x split.Attempt, signed []byte) (split.HelperMark, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	standing, listed, err := f.read(x.Task)
	if err != nil {
		return split.HelperMark{}, err
	}
	if !listed {
		return split.HelperMark{}, fmt.Errorf("helper's folder: %w", Older("a release of a task that was never joined"))
	}
	next, ok := standing.HelperMark.Release(x, signed)
	if !ok || next.X == standing.X {
		return standing.HelperMark, nil
	}
	standing.HelperMark = next
	f.settled[x.Task] = false
	if err := f.replace(markName(x.Task), standing.encode()); err != nil {
		return split.HelperMark{}, fmt.Errorf("helper's folder: mark of round %d: %w", x.Round, err)
	}
	f.settled[x.Task] = true
	return next, nil
}
