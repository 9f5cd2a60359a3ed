package pebblestore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
)

// A smallDisk takes a number of bytes. The write that goes beyond is cut there, as an operating system does it, and
// every later one fails. What is removed gives nothing back.
type smallDisk struct {
	vfs.FS
	mu      sync.Mutex
	left    int64
	written int64
}

func (d *smallDisk) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return smallFile{f, d}, nil
}

func (d *smallDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	d.mu.Lock()
	full := d.left <= 0
	d.mu.Unlock()
	if full { // a folder's entry takes room too
		return nil, &os.PathError{Op: "create", Path: name, Err: syscall.ENOSPC}
	}
	return d.file(d.FS.Create(name, category))
}

func (d *smallDisk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.file(d.FS.ReuseForWrite(oldname, newname, category))
}

func (d *smallDisk) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File,
	error) {
	return d.file(d.FS.OpenReadWrite(name, category, opts...))
}

type smallFile struct {
	vfs.File
	disk *smallDisk
}

func (f smallFile) Write(p []byte) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	n := min(int64(len(p)), max(f.disk.left, 0))
	f.disk.left -= n
	f.disk.written += n
	if n < int64(len(p)) {
		if _, err := f.File.Write(p[:n]); err != nil {
			return 0, err
		}
		return int(n), syscall.ENOSPC
	}
	return f.File.Write(p)
}

// WriteAt writes to the archive: all of it grows the file.
func (f smallFile) WriteAt(p []byte, at int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	n := min(int64(len(p)), max(f.disk.left, 0))
	f.disk.left -= n
	f.disk.written += n
	if _, err := f.File.WriteAt(p[:n], at); err != nil || n == int64(len(p)) {
		return int(n), err
	}
	return int(n), syscall.ENOSPC
}

// TestDiskOfEverySize runs on disks that are full after any number of bytes. The run stops with an error that says so,
// and which callers can tell from others; nothing that was acknowledged is missing and nothing is half there, whether
// the process alone ends or the power goes; and on a disk with room the task goes on to its end.
func TestDiskOfEverySize(t *testing.T) {
	sizes := longtest.Seeds(t, 50)
	if longtest.Run(t, "disks of most sizes, more than a minute") {
		sizes = 4000
	}
	for _, test := range []struct {
		script storetest.Script
		part   int // of the sizes
	}{{storetest.Script{Rounds: 4}, 1}, {storetest.Script{Rounds: 2, Bytes: 100_000}, 6}} {
		script := test.script
		t.Run(fmt.Sprintf("bytes=%d", script.Bytes), func(t *testing.T) {
			whole := &smallDisk{FS: vfs.NewCrashableMem(), left: 1 << 40}
			if _, err := (&life{script: script, starts: 2}).run(whole); err != nil {
				t.Fatal(err)
			}
			stride := max(1, whole.written*int64(test.part)/int64(sizes))
			const seed = 20260102
			rng := rand.New(rand.NewPCG(seed, 0))
			failures, starts := 0, 0
			for size := int64(0); size <= whole.written+stride; size += stride {
				mem := vfs.NewCrashableMem()
				l := &life{script: script, starts: 2}
				s, err := l.run(&smallDisk{FS: mem, left: size})
				if err != nil {
					failures++
					if !errors.Is(err, syscall.ENOSPC) {
						t.Errorf("disk of %d bytes: %v, want an error that wraps ENOSPC", size, err)
					}
				}
				if s != nil {
					wantFailed(t, s, err)
				}
				for _, percent := range []int{100, 0, 1 + rng.IntN(99)} { // the process ends; the power goes
					clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
					if err := survives(script, clone, l.acked.Load(), l.begun.Load()); err != nil {
						t.Errorf("disk of %d bytes, %d%% of unsynced data: %v", size, percent, err)
					}
					starts++
				}
			}
			t.Logf(
				"seed %d, the order in which files are drawn is the runtime's; %d bytes written; %d disks that were full, %d starts with room again",
				seed, whole.written, failures, starts)
			fmt.Printf("MEASURED pebblestore, checkpoints of %d bytes: %d full disks, %d starts afterwards\n", script.Bytes,
				failures, starts)
			if want := sizes / test.part / 2; failures < want {
				t.Errorf("only %d disks were full, want at least %d", failures, want)
			}
		})
	}
}

// TestCausesSurvive: whatever way an error takes through Pebble's logger, a full disk is distinguished from a broken one.
func TestCausesSurvive(t *testing.T) {
	for _, err := range []error{
		fatal("fatal commit error: %v", []any{syscall.ENOSPC}),
		fatal("write %q: %w", []any{"000004.log", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}}),
		newFailure(nil).guard(func() error { panic(fmt.Errorf("log writer: %w", syscall.ENOSPC)) }),
	} {
		if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EIO) {
			t.Errorf("%v: ENOSPC is lost", err)
		}
	}
	if err := fatal("a %s of %d", []any{"text", 3}); err.Error() != "a text of 3" || errors.Is(err, state.ErrFailed) {
		t.Errorf("%v", err)
	}
}
