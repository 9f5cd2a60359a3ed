package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
)

// An unlocked file system is what the next process finds after a kill: the files as they were written, synced or not,
// and nobody's lock.
type unlocked struct{ vfs.FS }

func (unlocked) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (u unlocked) Unwrap() vfs.FS { return u.FS }

func strideOr(t *testing.T, short int64, what string) int64 {
	t.Helper()
	if longtest.Run(t, what) {
		return 1
	}
	return short
}

// TestWhatIsReadIsDurable kills the process at every file operation, which leaves what it wrote in the operating
// system's memory, and starts another, which may find a commit there that was never synced. What Load then returns is
// announced, so a power cut right after it must not take it away.
func TestWhatIsReadIsDurable(t *testing.T) {
	stride := strideOr(t, 3, "kills at two of three operations, 5 s")
	kills, beyond := 0, 0
	for i := int64(1); ; i += stride {
		var ops atomic.Int64
		found, killed := killedAt(t, func(*life, errorfs.Op) bool { return ops.Add(1) >= i })
		if !killed {
			break
		}
		kills++
		if found {
			beyond++
		}
		if t.Failed() {
			t.Fatalf("killed at operation %d", i)
		}
	}
	unsynced := 0
	for commit := uint64(1); commit <= 4; commit++ { // written to the log, and not synced
		found, _ := killedAt(t, func(l *life, op errorfs.Op) bool {
			return l.begun.Load() >= commit && strings.HasSuffix(op.Path, ".log") && syncs(op.Kind)
		})
		if found {
			unsynced++
		}
	}
	if unsynced == 0 {
		t.Error("no commit that was not synced was found after a kill: the test does not reach what it is for")
	}
	t.Logf("%d kills, after %d of which a commit was found that had not been acknowledged", kills, beyond)
	fmt.Printf("MEASURED pebblestore: %d kills each followed by a power cut\n", kills)
	if kills < 30 {
		t.Errorf("only %d kills", kills)
	}
}

// killedAt runs a script whose process is killed at the first operation for which dead returns true, then reads, then
// takes the power away. It reports whether a commit was found that had not been acknowledged.
func killedAt(t *testing.T, dead func(*life, errorfs.Op) bool) (found, killed bool) {
	t.Helper()
	var gone atomic.Bool
	mem := vfs.NewCrashableMem()
	l := &life{script: storetest.Script{Rounds: 3}, starts: 2}
	fs := errorfs.Wrap(unlocked{mem}, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if gone.Load() || dead(l, op) {
			gone.Store(true)
			return syscall.EIO
		}
		return nil
	}))
	if _, err := l.run(fs); err == nil {
		return false, false
	}
	s, err := Open(folder, Options{fs: unlocked{mem}, Tail: shortTail})
	if err != nil {
		t.Errorf("open after a kill: %v", err)
		return false, true
	}
	n, err := l.script.Check(context.Background(), s)
	if err != nil || n < l.acked.Load() || n > l.begun.Load() {
		t.Errorf("after a kill: %d commits (%v), %d acknowledged, %d begun", n, err, l.acked.Load(), l.begun.Load())
	}
	if err := survives(l.script, mem.CrashClone(vfs.CrashCloneCfg{}), n, n); err != nil {
		t.Errorf("after a kill, then a power cut: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return n > l.acked.Load(), true
}

// TestCrashWhileRecovering takes the power away a second time, at the writes of the start after a crash. Then no
// commit is lost that was acknowledged, or that was read between the two crashes.
func TestCrashWhileRecovering(t *testing.T) {
	ctx := context.Background()
	stride := strideOr(t, 13, "second crashes after most first ones, 10 s")
	const seed = 20260103
	rng := rand.New(rand.NewPCG(seed, 0))
	script := storetest.Script{Rounds: 3}
	type left struct {
		fs           *vfs.MemFS
		acked, begun uint64
	}
	var lefts []left
	mem := vfs.NewCrashableMem()
	l := &life{script: script, starts: 2}
	var mu sync.Mutex
	ops := int64(0)
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			if ops++; ops%stride == 0 {
				acked := l.acked.Load()
				clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
				lefts = append(lefts, left{clone, acked, l.begun.Load()})
			}
		}
		return nil
	}))
	if _, err := l.run(fs); err != nil {
		t.Fatal(err)
	}
	crashes := 0
	for first, at := range lefts {
		var read atomic.Uint64 // commits that were read since
		read.Store(at.acked)
		second := 0
		var hurt sync.Mutex
		again := errorfs.Wrap(at.fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
				return nil
			}
			hurt.Lock()
			defer hurt.Unlock()
			second++
			acked := read.Load()
			clone := at.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
			crashes++
			if err := survives(script, clone, acked, at.begun); err != nil {
				t.Errorf("crash %d, then before write %d (%v of %s) of the next start: %v", first, second, op.Kind, op.Path, err)
			}
			return nil
		}))
		s, err := Open(folder, Options{fs: again, Tail: shortTail})
		if err != nil {
			t.Fatal(err)
		}
		n, err := script.Check(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		read.Store(n)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d, the order in which files are drawn is the runtime's; %d first and %d second crashes", seed,
		len(lefts), crashes)
	fmt.Printf("MEASURED pebblestore: %d crashes while recovering from a crash\n", crashes)
	if crashes < 100 {
		t.Errorf("only %d second crashes", crashes)
	}
}

// TestReadOnlyFaults lets the i-th operation of a look at the folder fail, for every i, on folders that were closed
// and that a crash left. The answer is the whole state or an error, and the folder is as it was.
func TestReadOnlyFaults(t *testing.T) {
	ctx := context.Background()
	const commits = 4
	script := storetest.Script{Rounds: 6}
	for what, clean := range map[string]*vfs.MemFS{"closed": filled(t, script, commits, shortTail),
		"crashed": crashed(t, script, commits)} {
		failures := 0
		for i := int64(1); ; i++ {
			var ops atomic.Int64
			mem := clean.CrashClone(vfs.CrashCloneCfg{})
			fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
				if ops.Add(1) == i {
					return syscall.EIO
				}
				return nil
			}))
			n, err := uint64(0), error(nil)
			s, err := Open(folder, Options{fs: fs, ReadOnly: true})
			if err == nil {
				n, err = script.Check(ctx, s)
				if closing := s.Close(); err == nil {
					err = closing
				}
			}
			switch {
			case err != nil:
				failures++
				if !errors.Is(err, syscall.EIO) {
					t.Errorf("%s, operation %d failed: %v does not wrap EIO", what, i, err)
				}
			case n != commits:
				t.Errorf("%s, operation %d failed: %d commits are read, want %d or an error", what, i, n, commits)
			}
			if err := survives(script, mem.CrashClone(vfs.CrashCloneCfg{}), commits, commits); err != nil {
				t.Errorf("%s, after a look in which operation %d failed: %v", what, i, err)
			}
			if ops.Load() < i {
				break
			}
		}
		t.Logf("%s: %d failures were noticed", what, failures)
		if failures < 8 {
			t.Errorf("%s: only %d failures were noticed", what, failures)
		}
	}
}
