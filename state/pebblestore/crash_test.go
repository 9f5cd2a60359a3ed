package pebblestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
)

const folder = "state/pebble"

// shortTail is the Options.Tail with which tests archive at every second commit.
const shortTail = 3

// A life is a run of a script over several starts of the store, on a file system that is about to be hurt. It
// counts the commits that were begun and those that were reported as done.
type life struct {
	script       storetest.Script
	starts       int // stores opened one after another, the commits spread over them
	begun, acked atomic.Uint64
}

// run returns the first error, and the store that returned it if it has failed.
func (l *life) run(fs vfs.FS) (failed *Store, err error) {
	ctx := context.Background()
	commits := l.script.Rounds + 1
	for start := range l.starts {
		s, err := Open(folder, Options{fs: fs, Tail: shortTail})
		if err != nil {
			return nil, err
		}
		for l.begun.Load() < commits*uint64(start+1)/uint64(l.starts) {
			c, err := storetest.Read(ctx, s)
			if err != nil {
				return s, err
			}
			next, entries, err := l.script.Next(c)
			if err != nil {
				return s, err
			}
			l.begun.Add(1)
			if err := s.Commit(ctx, next, entries, l.script.Kept(next.Cursor.Round)...); err != nil {
				return s, err
			}
			l.acked.Add(1)
		}
		if err := s.Close(); err != nil {
			return s, err
		}
	}
	return nil, nil
}

// survives opens what a crash left and checks that it has a whole prefix of the commits, with every acknowledged one, from
// which the script goes on to its end.
func survives(script storetest.Script, fs vfs.FS, acked, begun uint64) error {
	ctx := context.Background()
	s, err := Open(folder, Options{fs: fs, Tail: shortTail})
	if err != nil {
		return fmt.Errorf("open after the crash: %w", err)
	}
	defer s.Close()
	n, err := script.Check(ctx, s)
	if err != nil {
		return err
	}
	if n < acked || n > begun {
		return fmt.Errorf("%d commits are there, %d were acknowledged and %d begun", n, acked, begun)
	}
	for ; n <= script.Rounds; n++ {
		if err := script.Advance(ctx, s); err != nil {
			return fmt.Errorf("going on after the crash: %w", err)
		}
	}
	if n, err := script.Check(ctx, s); err != nil || n != script.Rounds+1 {
		return fmt.Errorf("at the end of the script: %d commits, %w", n, err)
	}
	return nil
}

// syncs reports whether an operation makes something durable: the points at which a crash decides.
func syncs(k errorfs.OpKind) bool {
	return k == errorfs.OpFileSync || k == errorfs.OpFileSyncData || k == errorfs.OpFileSyncTo
}

// TestCrashAtEveryWrite takes the power away before every operation that syncs and before others that write, in a run
// with small checkpoints, and before some of either with large ones: with nothing that was not synced, and with an
// arbitrary part of it.
func TestCrashAtEveryWrite(t *testing.T) {
	long := longtest.Run(t, "crashes at most of the writes and mixtures, more than a minute")
	const seed = 20260101
	t.Logf("seed %d; the order in which files are drawn is the runtime's", seed)
	for _, test := range []struct {
		script storetest.Script
		stride int
	}{
		{storetest.Script{Rounds: 6}, 3},
		{storetest.Script{Rounds: 2, Bytes: 100_000}, 11}, // above half of the memtable: Pebble's large batches
	} {
		script, stride := test.script, test.stride
		if long {
			stride = 1
		}
		t.Run(fmt.Sprintf("bytes=%d", script.Bytes), func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			l := &life{script: script, starts: 2}
			var mu sync.Mutex // one crash at a time; operations come from several goroutines
			ops, crashes := 0, 0
			rng := rand.New(rand.NewPCG(seed, uint64(script.Bytes)))
			fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				if ops++; ops%stride != 0 && (script.Bytes > 0 || !syncs(op.Kind)) {
					return nil
				}
				percents := []int{0, 10 + rng.IntN(90)}
				if long {
					percents = append(percents, 5, 25, 50, 75, 95, 100)
				}
				for _, percent := range percents {
					acked := l.acked.Load()
					clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
					begun := l.begun.Load()
					crashes++
					if err := survives(script, clone, acked, begun); err != nil {
						t.Errorf("crash before write %d (%v of %s) with %d%% of unsynced data: %v", ops, op.Kind, op.Path, percent, err)
					}
				}
				return nil
			}))
			if _, err := l.run(fs); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d writes, %d crashes", ops, crashes)
			fmt.Printf("MEASURED pebblestore, checkpoints of %d bytes: %d crashes at %d operations that write\n", script.Bytes,
				crashes, ops)
			if crashes < 20 {
				t.Errorf("only %d crashes were tried, want at least 20", crashes)
			}
		})
	}
}

// TestReportedCommitIsDurable takes the power away right after a commit returned nil.
func TestReportedCommitIsDurable(t *testing.T) {
	ctx := context.Background()
	script := storetest.Script{Rounds: 8}
	mem := vfs.NewCrashableMem()
	s, err := Open(folder, Options{fs: mem, Tail: shortTail})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := uint64(1); n <= script.Rounds+1; n++ {
		if err := script.Advance(ctx, s); err != nil {
			t.Fatal(err)
		}
		if err := survives(script, mem.CrashClone(vfs.CrashCloneCfg{}), n, n); err != nil {
			t.Errorf("after commit %d: %v", n, err)
		}
	}
}
