package helper

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/shuffle/helper/folder"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
)

// copyFolder copies a folder's files, and returns what puts them back.
func copyFolder(t *testing.T, dir string) (restore func()) {
	t.Helper()
	files := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if _, was := files[e.Name()]; was {
				continue // it stays the file that it is, as on a disk that is put back
			}
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
		for name, data := range files {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCopiedMachine: nothing distinguishes a copied disk from the original. A process that sees a Join of its own key
// that no process of its folder put stops, and makes the other one stop as well: neither releases anything from then
// on.
func TestCopiedMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 3)
		second := copyFolder(t, w.dir)
		p := w.start(t.Context(), nil)
		w.announce(t.Context(), 1)
		l := w.opens(t.Context(), 1, 1, nil)
		w.must(l.joined(t.Context(), t.Context()))
		_ = p.stop()
		first := copyFolder(t, w.dir)
		second()
		p = w.start(t.Context(), nil)
		time.Sleep(20 * time.Second)
		if err := p.stop(); !errors.Is(err, folder.ErrOlder) || !strings.Contains(err.Error(), "Stop the other process too") {
			t.Errorf("the second machine: %v", err)
		}
		first()
		p = w.start(t.Context(), nil)
		time.Sleep(20 * time.Second)
		if err := p.stop(); !errors.Is(err, folder.ErrOlder) {
			t.Errorf("the first machine: %v", err)
		}
		for r := stream.Round(1); r <= 2; r++ {
			m, err := w.broker.Get(t.Context(), w.name.Share(r))
			w.must(err)
			if s, err := splitwire.VerifyShare(m.Data, w.helperKey); err != nil || s.Refusal == split.None {
				t.Errorf("round %d: %+v, %v: want a refusal", r, s, err)
			}
		}
	})
}

// TestRestoredFolder: a helper whose folder was put back stops for good, as soon as broker or leader shows it a Share or
// a Join of its own that the folder does not know.
func TestRestoredFolder(t *testing.T) {
	for name, test := range map[string]struct {
		early bool // the copy is of before the first Join
		hides bool // the broker hides the Share when the process begins
	}{
		"a release is forgotten": {}, "the task is forgotten": {early: true}, "the leader tells": {hides: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 3, 3)
				restore := copyFolder(t, w.dir)
				p := w.start(t.Context(), nil)
				for r := uint64(1); r <= 2; r++ {
					w.announce(t.Context(), r)
					_, err := w.leads(t.Context(), r, 1)
					w.must(err)
					time.Sleep(5 * time.Second)
					if r == 1 && !test.early {
						restore = copyFolder(t, w.dir)
					}
				}
				_ = p.stop()
				restore()
				if test.early { // the Shares are gone, as with an operator who lies; the Joins are there
					w.broker.Inject(func(_ memory.Op, subject string) memory.Fault {
						if strings.Contains(subject, ".share.") {
							return memory.Lag
						}
						return memory.None
					})
				}
				hidden := test.hides
				if test.hides {
					w.broker.Inject(func(_ memory.Op, subject string) memory.Fault {
						if hidden && strings.Contains(subject, ".share.") {
							return memory.Lag
						}
						return memory.None
					})
				}
				p = w.start(t.Context(), nil)
				time.Sleep(20 * time.Second)
				if test.hides {
					w.put(t.Context(), w.name.Round(3), w.sign(w.learner, w.round(3, 3)))
					l := w.opens(t.Context(), 3, 1, nil)
					w.must(l.joined(t.Context(), t.Context()))
					hidden = false
					l.sends(&split.Ping{X: l.x, Highest: 2})
					time.Sleep(20 * time.Second)
				}
				synctest.Wait()
				if err := p.stop(); !errors.Is(err, folder.ErrOlder) {
					t.Errorf("the helper goes on: %v", err)
				}
				if test.early && !w.absent(w.name.Join(2, 2)) {
					t.Error("joined")
				}
				// And so at each start.
				p = w.start(t.Context(), nil)
				time.Sleep(20 * time.Second)
				synctest.Wait()
				if err := p.stop(); !errors.Is(err, folder.ErrOlder) {
					t.Errorf("the next process goes on: %v", err)
				}
			})
		})
	}
}

// TestOlderBroker: at a broker that knows less than the folder, the helper puts its stored Share of a round again, and
// refuses the rounds before it, so that nobody sends to them.
func TestOlderBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 3)
		p := w.start(t.Context(), nil)
		for r := uint64(1); r <= 2; r++ {
			w.announce(t.Context(), r)
			_, err := w.leads(t.Context(), r, 1)
			w.must(err)
		}
		time.Sleep(5 * time.Second)
		want, err := w.broker.Get(t.Context(), w.name.Share(2))
		w.must(err)
		_ = p.stop()
		if w.broker, err = memory.New(memory.Config{}); err != nil {
			t.Fatal(err)
		}
		refused := 0
		p = w.start(t.Context(), func(c *Config) { c.Observer.Refused = func(stream.Round) { refused++ } })
		for r := uint64(1); r <= 2; r++ {
			w.announce(t.Context(), r)
			if _, err := w.leads(t.Context(), r, 1); !errors.Is(err, errRefused) {
				t.Errorf("round %d: %v", r, err)
			}
		}
		if s := w.shareOf(1); s == nil || s.Refusal != split.Marked || refused != 1 {
			t.Errorf("round 1 has %v, %d refused", s, refused)
		}
		if got, err := w.broker.Get(t.Context(), w.name.Share(2)); err != nil || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("round 2 has another Share: %v", err)
		}
		w.announce(t.Context(), 3)
		got, err := w.leads(t.Context(), 3, 1)
		w.must(err)
		w.checkTotals(got)
		_ = p.stop()
	})
}

// fullDisk is a folder that has no room for a while.
type fullDisk struct {
	Folder
	mu    sync.Mutex
	fails int
	sent  func() bool
	early bool // something was sent before the folder had it
}

func (f *fullDisk) Release(x split.Attempt, signed []byte) (split.HelperMark, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.early = f.early || f.sent()
	if f.fails--; f.fails >= 0 {
		return split.HelperMark{}, syscall.ENOSPC
	}
	return f.Folder.Release(x, signed)
}

// TestFullDisk: until the folder has the mark nothing of the release is sent; then it goes on by itself.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, left := newWorld(t, 3, 3), new(leavings)
		disk := &fullDisk{fails: 20, sent: func() bool {
			left.mu.Lock()
			defer left.mu.Unlock()
			return len(left.shares) > 0
		}}
		p := w.start(t.Context(), func(c *Config) {
			c.Exchange, c.Records = watched{c.Exchange, w, left}, recorded{c.Records, w, left}
			disk.Folder, c.Folder = c.Folder, disk
		})
		w.announce(t.Context(), 1)
		got, err := w.leads(t.Context(), 1, 1)
		w.must(err)
		w.checkTotals(got)
		if disk.fails >= 0 || disk.early {
			t.Errorf("%d failures left, sent early: %t", disk.fails, disk.early)
		}
		time.Sleep(5 * time.Second)
		if s := p.Status(); s.Trouble != "" || s.Released != 1 {
			t.Errorf("status %+v", s)
		}
		left.audit(t)
		_ = p.stop()
	})
}
