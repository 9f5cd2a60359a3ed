package issuer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/stream/grant"
)

// ErrList is returned where the list of people who have their signature is missing, damaged, of another key, or older
// than the mark beside the key. Nothing is signed then: an issuer that forgot whom it signed for would sign again.
var ErrList = errors.New("the issuer's list")

// errOther is returned where a person has the signature of another message.
var errOther = errors.New("this person's message was another")

// A list file begins with its magic bytes and the key id; then come entries.
//
//	person     32 bytes, HMAC-SHA256
//	message    32 bytes, SHA-256 of the blinded message
//	checksum   4 bytes, CRC-32C of both, big endian
const (
	listKind   = "panlearn issuer list v"
	listMagic  = listKind + "1\n"
	entrySize  = 2*sha256.Size + 4
	markSuffix = ".mark"
	listName   = "issued"
)

// lockWait bounds the wait for another process to let go of the folder.
const lockWait = time.Second

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A List remembers for whom an issuer signed which message. Its methods may be called from any goroutine.
type List struct {
	key    *Key
	mark   string       // path
	unlock func() error // of folder and mark

	mu      sync.Mutex
	known   map[[sha256.Size]byte]entry // guarded by mu
	waiting *group                      // guarded by mu: of the next sync; nil: none
	syncing bool                        // guarded by mu: somebody is in syncAll, who alone uses the fields below
	failed  error                       // guarded by mu; set: every later call fails

	file   *os.File
	stored uint64 // people in it
}

// OpenList opens the list of a key in a folder, or makes an empty one where the mark says that nothing was signed.
// keyPath is the key's file; the mark is beside it. One process holds the mark: two lists of one key would each let a
// person have a token.
func OpenList(dir, keyPath string, key *Key) (*List, error) {
	if err := disk.MakeFolder(dir); err != nil {
		return nil, err
	}
	unlock, err := disk.LockWithin(filepath.Join(dir, "LOCK"), lockWait)
	if err != nil {
		return nil, err
	}
	unlockMark, err := lockMark(keyPath)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	l := &List{key: key, mark: keyPath + markSuffix, known: map[[sha256.Size]byte]entry{},
		unlock: func() error { return errors.Join(unlockMark(), unlock()) }}
	if err := l.open(filepath.Join(dir, listName)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *List) open(path string) error {
	marked, err := readMark(l.mark)
	if err != nil {
		return fmt.Errorf("%w: its mark %s: %w", ErrList, l.mark, err)
	}
	id := grant.KeyID(l.key.Signer.Public())
	head := append([]byte(listMagic), id[:]...)
	if l.file, err = os.OpenFile(path, os.O_RDWR, 0); errors.Is(err, fs.ErrNotExist) && marked == 0 {
		if l.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return err
		}
		_, err = l.file.Write(head)
		return errors.Join(err, l.file.Sync(), disk.SyncFolder(filepath.Dir(path)))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is not there, and %d people have their signature: put it back; without it this key "+
			"signs nothing more, and a new task needs a new key", ErrList, path, marked)
	}
	if err != nil {
		return err
	}
	all, err := io.ReadAll(l.file)
	if err != nil {
		return err
	}
	if marked == 0 && len(all) < len(head) && bytes.HasPrefix(head, all) { // a process died while it made it
		_, err = l.file.WriteAt(head, 0)
		return errors.Join(err, l.file.Sync())
	}
	if bytes.HasPrefix(all, []byte(listKind)) && !bytes.HasPrefix(all, []byte(listMagic)) {
		return fmt.Errorf("%w: %s was written by another version of panlearn: use that one, and change nothing in it; "+
			"docs/how-to/upgrades.md has the way back", ErrList, path)
	}
	if !bytes.HasPrefix(all, head) {
		return fmt.Errorf("%w: %s is not that of this key", ErrList, path)
	}
	rest, n := all[len(head):], uint64(0)
	for ; len(rest) >= entrySize; rest = rest[entrySize:] {
		e := rest[:entrySize]
		if crc32.Checksum(e[:2*sha256.Size], castagnoli) != binary.BigEndian.Uint32(e[2*sha256.Size:]) {
			break
		}
		l.known[[sha256.Size]byte(e)] = entry{message: [sha256.Size]byte(e[sha256.Size:])}
		n++
	}
	if n < marked || uint64(len(l.known)) != n {
		return fmt.Errorf("%w: %s has %d people, and %d have their signature: it is damaged, or an older copy. Put the newest "+
			"back; without it this key signs nothing more, and a new task needs a new key", ErrList, path, n, marked)
	}
	// What is behind was torn by a crash: nobody was answered.
	if err := l.file.Truncate(int64(len(head)) + int64(n)*entrySize); err != nil {
		return err
	}
	if _, err := l.file.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	l.stored = n
	return errors.Join(l.file.Sync(), writeMark(strings.TrimSuffix(l.mark, markSuffix), n))
}

// Len returns for how many people the issuer signed.
func (l *List) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.known)
}

// Err returns the error that made the list unusable, or nil.
func (l *List) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// take notes that a person has the signature of a blinded message, durably, before it returns. The same message may be
// taken again; another one of the person is errOther.
func (l *List) take(person string, blinded []byte) (again bool, err error) {
	who, what := l.key.who(person), sha256.Sum256(blinded)
	l.mu.Lock()
	before, again := l.known[who]
	switch {
	case l.failed != nil:
		defer l.mu.Unlock()
		return false, l.failed
	case again && before.message != what:
		l.mu.Unlock()
		return false, errOther
	case again && before.group == nil:
		l.mu.Unlock()
		return true, nil
	case !again:
		if l.waiting == nil {
			l.waiting = &group{done: make(chan struct{})}
		}
		before = entry{message: what, group: l.waiting}
		l.known[who] = before
		l.waiting.add(who, what)
	}
	sync := !l.syncing && l.waiting != nil
	l.syncing = l.syncing || sync
	l.mu.Unlock()
	if sync { // and all that comes meanwhile, so that one sync serves many
		l.syncAll()
	}
	<-before.group.done
	return again, before.group.err
}

// An entry holds the hash of a person's message, and the group with which it is synced; nil: it is.
type entry struct {
	message [sha256.Size]byte
	group   *group
}

// A group of entries is synced together. err is written before done is closed.
type group struct {
	entries []byte
	people  [][sha256.Size]byte
	done    chan struct{}
	err     error
}

func (g *group) add(who, what [sha256.Size]byte) {
	g.people = append(g.people, who)
	g.entries = append(append(g.entries, who[:]...), what[:]...)
	g.entries = binary.BigEndian.AppendUint32(g.entries, crc32.Checksum(g.entries[len(g.entries)-2*sha256.Size:],
		castagnoli))
}

// syncAll syncs groups until none waits.
func (l *List) syncAll() {
	for {
		l.mu.Lock()
		g := l.waiting
		l.waiting = nil
		if g == nil {
			l.syncing = false
			l.mu.Unlock()
			return
		}
		failed := l.failed
		l.mu.Unlock()
		if g.err = failed; failed == nil {
			g.err = l.sync(g)
		}
		l.mu.Lock()
		if l.failed = g.err; g.err == nil {
			for _, who := range g.people {
				l.known[who] = entry{message: l.known[who].message}
			}
		}
		l.mu.Unlock()
		close(g.done)
	}
}

// sync writes a group and then the mark, both synced. After an error nobody knows what is stored.
func (l *List) sync(g *group) error {
	if _, err := l.file.Write(g.entries); err != nil {
		return fmt.Errorf("%w: %w", ErrList, err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("%w: %w", ErrList, err)
	}
	l.stored += uint64(len(g.people))
	if err := writeMark(strings.TrimSuffix(l.mark, markSuffix), l.stored); err != nil {
		return fmt.Errorf("%w: its mark: %w", ErrList, err)
	}
	return nil
}

// Close closes the list, and lets another process open it.
func (l *List) Close() error {
	var err error
	if l.file != nil {
		err = l.file.Close()
	}
	return errors.Join(err, l.unlock())
}

// lockMark lets one process at a time have the mark beside a key.
func lockMark(keyPath string) (unlock func() error, err error) {
	return disk.LockWithin(keyPath+markSuffix+".lock", lockWait)
}

func readMark(path string) (uint64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(string(text), "\n"), 10, 64)
	if err != nil {
		return 0, errors.New("not a number of people")
	}
	return n, nil
}

// writeMark writes how many people have their signature beside a key, so that a crash leaves the old mark or the new
// one.
func writeMark(keyPath string, n uint64) error {
	path := keyPath + markSuffix
	f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = disk.Put(f, fmt.Appendf(nil, "%d\n", n)); err == nil {
		err = os.Rename(path+".tmp", path)
	}
	return errors.Join(err, disk.SyncFolder(filepath.Dir(path)))
}
