package filestore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

func openLedger(t rapid.TB, dir string) *filestore.Ledger {
	t.Helper()
	l, err := filestore.OpenLedger(dir)
	must(t, err)
	return l
}

// whole returns all that a ledger holds.
func whole(t rapid.TB, l ledger.Ledger) string {
	t.Helper()
	var out strings.Builder
	for a, err := range l.Accounts() {
		must(t, err)
		fmt.Fprintf(&out, "%x: %v\n", a.Key[:], a.Charges)
	}
	clock, err := l.Clock()
	must(t, err)
	return fmt.Sprint(out.String(), clock.UnixMilli())
}

// Whatever is written and refused, with a clock that jumps, a file that is opened again returns the same as the ledger
// in memory.
func TestLedgerAnswersAsMemory(t *testing.T) {
	dir := t.TempDir()
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		path := filepath.Join(dir, fmt.Sprint(runs))
		model, l := memory.NewLedger(), openLedger(t, path)
		keys := []participation.Key{ledger.Everyone, participation.EventKey("a"), participation.EventKey("b")}
		refused := errors.New("refused")
		for range rapid.IntRange(1, 6).Draw(t, "writes") {
			at := time.UnixMilli(rapid.Int64Range(0, 1<<41).Draw(t, "clock"))
			on := keys[:rapid.IntRange(0, len(keys)).Draw(t, "accounts")]
			which, fails := rapid.Byte().Draw(t, "task"), rapid.IntRange(0, 4).Draw(t, "refuse") == 0
			edit := func(now time.Time, charges [][]ledger.Charge) error {
				for i := range charges {
					charges[i] = append(charges[i], ledger.Charge{Task: stream.Hash{which}, Name: "churn", Epsilon: float64(which) / 7,
						Delta: 1e-7, Standing: uint64(which), Anonymous: which&1 > 0, Lost: which&2 > 0, ByUser: which&4 > 0, At: now})
				}
				if fails {
					return refused
				}
				return nil
			}
			want := model.Update(at, on, edit)
			got := l.Update(at, on, edit)
			if !errors.Is(got, want) || !errors.Is(want, got) {
				t.Fatalf("%v, want %v", got, want)
			}
		}
		if got, want := whole(t, openLedger(t, path)), whole(t, model); got != want {
			t.Fatalf("the file holds\n%s\nwant\n%s", got, want)
		}
	})
}

// Several publishers share a ledger; none of their charges is lost.
func TestLedgerIsShared(t *testing.T) {
	dir := t.TempDir()
	const writers, writes = 4, 10
	var group sync.WaitGroup
	for range writers {
		l := openLedger(t, dir)
		group.Go(func() {
			for range writes {
				err := l.Update(time.Now(), []participation.Key{ledger.Everyone},
					func(now time.Time, charges [][]ledger.Charge) error {
						if len(charges[0]) == 0 {
							charges[0] = []ledger.Charge{{Name: "churn", At: now}}
						}
						charges[0][0].Standing++
						return nil
					})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	l, err := filestore.ReadLedger(dir)
	must(t, err)
	for a, err := range l.Accounts() {
		must(t, err)
		if a.Charges[0].Standing != writers*writes {
			t.Errorf("%d charges, want %d", a.Charges[0].Standing, writers*writes)
		}
	}
}

// A ledger that cannot be what it was is refused, never taken for an empty one.
func TestLedgerRefusesDamage(t *testing.T) {
	if _, err := filestore.ReadLedger(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no ledger: %v", err)
	}
	for name, damage := range map[string]func(path string) error{
		"readable by others": func(path string) error { return os.Chmod(path, 0o644) },
		"cut":                func(path string) error { return os.Truncate(path, 30) },
		"another file": func(path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("x", 1<<15)),
				0o600)
		},
		"participations": func(path string) error {
			s, err := filestore.Open(path + ".other")
			if err != nil {
				return err
			}
			logs, err := filepath.Glob(filepath.Join(path+".other", "*.log"))
			return errors.Join(err, s.Close(), os.Rename(logs[0], path))
		},
		"a charge that is no number": func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			i := strings.Index(string(data), "churn")
			copy(data[i+32:], "\x7f\xf8\x00\x00\x00\x00\x00\x01") // NaN
			return os.WriteFile(path, data, 0o600)
		},
	} {
		dir := t.TempDir()
		l := openLedger(t, dir)
		must(t, l.Update(time.Now(), []participation.Key{ledger.Everyone},
			func(now time.Time, charges [][]ledger.Charge) error {
				charges[0] = []ledger.Charge{{Name: "churn", Epsilon: 1, Delta: 1e-6, Standing: 1, At: now}}
				return nil
			}))
		must(t, damage(filepath.Join(dir, filestore.LedgerName)))
		_, failed := filestore.OpenLedger(dir)
		if failed == nil {
			failed = l.Update(time.Now(), []participation.Key{ledger.Everyone},
				func(time.Time, [][]ledger.Charge) error { return nil })
		}
		if failed == nil || strings.Contains(failed.Error(), "directory") {
			t.Errorf("%s: charged as if nothing had happened", name)
		}
	}
}

// The next publisher works without what an earlier one lost, which was stopped in the middle of a write or before a
// reply.
func TestLedgerTorn(t *testing.T) {
	dir := t.TempDir()
	add := func(l ledger.Ledger) {
		must(t, l.Update(time.UnixMilli(1e12), []participation.Key{ledger.Everyone},
			func(now time.Time, charges [][]ledger.Charge) error {
				charges[0] = append(charges[0], ledger.Charge{Name: "churn", Epsilon: 1, Delta: 1e-6, Standing: 1, At: now})
				return nil
			}))
	}
	l := openLedger(t, dir)
	add(l)
	path := filepath.Join(dir, filestore.LedgerName)
	once, err := os.ReadFile(path)
	must(t, err)
	want := whole(t, l)
	add(openLedger(t, dir))
	twice, err := os.ReadFile(path)
	must(t, err)
	for n := len(once); n < len(twice); n++ {
		must(t, os.WriteFile(path, twice[:n], 0o600))
		again := openLedger(t, dir)
		if got := whole(t, again); got != want {
			t.Fatalf("cut at byte %d it is\n%s\nwant\n%s", n, got, want)
		}
		add(again)
	}
	must(t, os.WriteFile(path, once, 0o600))
	add(l) // it had seen once alone
	must(t, os.WriteFile(path, once, 0o600))
	if err := l.Update(time.UnixMilli(1e12), nil, func(time.Time, [][]ledger.Charge) error { return nil }); err == nil ||
		!strings.Contains(err.Error(), "went back") {
		t.Errorf("an older copy in its place: %v", err)
	}
}

// TestLedgerWrittenAnew checks that a rewritten ledger holds the same, also for processes that had read the old
// file.
func TestLedgerWrittenAnew(t *testing.T) {
	dir := t.TempDir()
	a, b, model := openLedger(t, dir), openLedger(t, dir), memory.NewLedger()
	path := filepath.Join(dir, filestore.LedgerName)
	largest, shrunk := int64(0), false
	for i := range 40 {
		keys := []participation.Key{ledger.Everyone}
		for k := range 800 {
			keys = append(keys, participation.EventKey(fmt.Sprint(k)))
		}
		edit := func(now time.Time, charges [][]ledger.Charge) error {
			for k := range charges {
				charges[k] = []ledger.Charge{{Name: "churn", Epsilon: 1, Delta: 1e-6, Standing: uint64(i), At: now}}
			}
			return nil
		}
		must(t, model.Update(time.UnixMilli(1e12), keys, edit))
		must(t, []*filestore.Ledger{a, b}[i%2].Update(time.UnixMilli(1e12), keys, edit))
		info, err := os.Stat(path)
		must(t, err)
		shrunk, largest = shrunk || info.Size() < largest, max(largest, info.Size())
	}
	for _, l := range []ledger.Ledger{a, b, openLedger(t, dir)} {
		if whole(t, l) != whole(t, model) {
			t.Error("it says something else")
		}
	}
	if !shrunk {
		t.Errorf("it grew to %d bytes and was not written anew", largest)
	}
}

// What is refused as a charge is never written: it could not be added up.
func TestLedgerRefusesNonsense(t *testing.T) {
	l := openLedger(t, t.TempDir())
	before := whole(t, l)
	nan := ledger.Charge{Name: "churn", At: time.Now()}
	nan.Epsilon /= nan.Delta
	for _, c := range []ledger.Charge{nan, {Name: "churn", Epsilon: -1}, {Name: "churn", Delta: 1},
		{Name: "NO", Delta: 0.1}} {
		err := l.Update(time.Now(), []participation.Key{ledger.Everyone}, func(_ time.Time, charges [][]ledger.Charge) error {
			charges[0] = []ledger.Charge{c}
			return nil
		})
		if err == nil {
			t.Errorf("%+v was written", c)
		}
	}
	if after := whole(t, l); after != before {
		t.Errorf("the ledger went from %s to %s", before, after)
	}
}

func BenchmarkLedger(b *testing.B) {
	for _, users := range []int{0, 128} {
		b.Run(fmt.Sprintf("users=%d", users), func(b *testing.B) {
			l := openLedger(b, b.TempDir())
			n := 0
			for b.Loop() {
				keys := []participation.Key{ledger.Everyone}
				for range users {
					n++
					keys = append(keys, participation.EventKey(fmt.Sprint(n)))
				}
				must(b, l.Update(time.Now(), keys, func(now time.Time, charges [][]ledger.Charge) error {
					for i := range charges {
						charges[i] = []ledger.Charge{{Name: "churn", Epsilon: 1, Delta: 1e-6, Standing: uint64(n), At: now}}
					}
					return nil
				}))
			}
		})
	}
}

// TestLedgerTakenAway checks that a ledger that is removed while a publisher runs is not started afresh: an empty
// one would have forgotten everything.
func TestLedgerTakenAway(t *testing.T) {
	dir := t.TempDir()
	l, err := filestore.OpenLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	update := func() error {
		return l.Update(time.UnixMilli(1e12), []participation.Key{ledger.Everyone},
			func(time.Time, [][]ledger.Charge) error { return nil })
	}
	if err := update(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, filestore.LedgerName)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := update(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want ErrNotExist", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a ledger was begun anew")
	}
}

// TestLedgerGoesBack checks that a ledger that is replaced by an older copy while a publisher runs, rewritten
// since or not, is never believed: neither at first nor when asked again.
func TestLedgerGoesBack(t *testing.T) {
	for _, anew := range []bool{false, true} {
		dir, other := t.TempDir(), t.TempDir()
		l, old := openLedger(t, dir), openLedger(t, other)
		update := func(l *filestore.Ledger, at int64) error {
			return l.Update(time.UnixMilli(at), []participation.Key{ledger.Everyone},
				func(time.Time, [][]ledger.Charge) error { return nil })
		}
		must(t, update(l, 1e12))
		must(t, update(old, 1e12))
		from := dir
		if anew { // another file, as after a compaction
			from = other
		}
		before, err := os.ReadFile(filepath.Join(from, filestore.LedgerName))
		must(t, err)
		must(t, update(l, 1e12+1000))
		must(t, os.WriteFile(filepath.Join(dir, filestore.LedgerName), before, 0o600))
		for i := range 3 {
			if err := update(l, 1e12+2000); err == nil {
				t.Errorf("anew %v: update %d worked on an older copy", anew, i)
			}
		}
	}
}
