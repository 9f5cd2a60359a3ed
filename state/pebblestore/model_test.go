package pebblestore

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
)

// TestFaultyFolders plays any history on a folder: commits, restarts, power cuts that keep any part of what was not
// synced, an archive that cannot be written, is damaged, lost or put back from a backup, and Pebble's files of an
// earlier day beside the newest archive. Whatever comes, the folder holds every commit that was reported as done, and
// goes on; and the ledger verifies, or where the archive was touched, says that it does not.
func TestFaultyFolders(t *testing.T) {
	ends, rolled, restored := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		script := storetest.Script{Rounds: 60, Bytes: 16}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		mem := vfs.NewCrashableMem()
		var broken atomic.Bool // Pebble's own goroutines ask
		var faulty vfs.FS
		wrap := func() {
			faulty = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if broken.Load() && strings.Contains(op.Path, archiveName) && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
					return syscall.ENOSPC
				}
				return nil
			}))
		}
		wrap()
		var s *Store
		start := func() {
			var err error
			if s, err = Open(folder, Options{fs: faulty, Tail: shortTail}); err != nil {
				rt.Fatal(err)
			}
		}
		start()
		defer func() { s.Close() }()
		commits, touched := uint64(0), false
		old, oldCommits := (*vfs.MemFS)(nil), uint64(0)
		// beside runs what changes files between two lives of the store.
		beside := func(change func()) {
			if err := s.Close(); err != nil {
				rt.Fatal(err)
			}
			change()
			start()
		}
		rt.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "rounds") {
					if commits > script.Rounds {
						ends++
						return
					}
					next, entries, err := script.Next(s.current)
					if err == nil {
						err = s.Commit(rt.Context(), next, entries, script.Kept(next.Cursor.Round)...)
					}
					if err != nil {
						rt.Fatal(err)
					}
					commits++
				}
			},
			"restart": func(*rapid.T) { beside(func() {}) },
			"power cut": func(*rapid.T) {
				clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
				s.Close()
				mem = clone
				wrap()
				start()
			},
			"archive fails or works": func(*rapid.T) { broken.Store(!broken.Load()) },
			"damage the archive": func(t *rapid.T) {
				name := filepath.Join(folder, archiveName)
				if info, err := mem.Stat(name); err != nil || info.Size() == 0 {
					t.Skip("nothing is archived")
				}
				beside(func() {
					touched = true
					if rng.IntN(4) == 0 {
						if err := mem.Remove(name); err != nil {
							rt.Fatal(err)
						}
						return
					}
					f, err := mem.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
					if err != nil {
						rt.Fatal(err)
					}
					info, err := f.Stat()
					if err == nil {
						_, err = f.WriteAt(bytes.Repeat([]byte{byte(rng.Uint32())}, 1+rng.IntN(300)), rng.Int64N(info.Size()))
					}
					if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
						rt.Fatal(err)
					}
				})
			},
			"put a backup's archive in its place": func(*rapid.T) {
				if s.archived.Head.Length == 0 {
					return
				}
				beside(func() {
					var all []byte
					for n := range commits {
						_, entries, err := script.At(n)
						if err != nil {
							rt.Fatal(err)
						}
						for _, e := range entries {
							line, err := e.MarshalBinary()
							if err != nil {
								rt.Fatal(err)
							}
							all = append(all, line...)
						}
					}
					f, err := mem.Create(filepath.Join(folder, archiveName), vfs.WriteCategoryUnspecified)
					if err == nil {
						_, err = f.Write(all)
					}
					if err == nil {
						err = errors.Join(f.Sync(), f.Close())
					}
					if err != nil {
						rt.Fatal(err)
					}
					touched = false
					restored++
				})
			},
			"keep a copy": func(*rapid.T) { old, oldCommits = mem.CrashClone(vfs.CrashCloneCfg{}), commits },
			"Pebble is rolled back": func(t *rapid.T) {
				if old == nil || oldCommits > commits {
					t.Skip("no copy")
				}
				beside(func() {
					back := old.CrashClone(vfs.CrashCloneCfg{})
					archive := []byte(nil)
					if f, err := mem.Open(filepath.Join(folder, archiveName)); err == nil {
						info, err := f.Stat()
						if err != nil {
							rt.Fatal(err)
						}
						archive = make([]byte, info.Size())
						if _, err := f.ReadAt(archive, 0); len(archive) > 0 && err != nil {
							rt.Fatal(err)
						}
						f.Close()
					}
					f, err := back.Create(filepath.Join(folder, archiveName), vfs.WriteCategoryUnspecified)
					if err == nil {
						_, err = f.Write(archive)
					}
					if err == nil {
						err = errors.Join(f.Sync(), f.Close())
					}
					if err == nil {
						d, open := back.OpenDir(folder)
						err = errors.Join(open, d.Sync(), d.Close())
					}
					if err != nil {
						rt.Fatal(err)
					}
					mem, commits = back, oldCommits
					wrap()
					rolled++
				})
			},
			"": func(*rapid.T) {
				c, err := s.Load(rt.Context())
				if err != nil && !errors.Is(err, state.ErrEmpty) {
					rt.Fatal(err)
				}
				if commits > 0 {
					if want, _, err := script.At(commits - 1); err != nil || !c.Equal(want) {
						rt.Fatalf("%d commits were made, round %d is there, or another one (%v)", commits, c.Cursor.Round, err)
					}
				} else if !c.IsZero() {
					rt.Fatalf("round %d is there, and nothing was committed", c.Cursor.Round)
				}
				if err := c.VerifyLedger(state.Ledger{}, s.Ledger(rt.Context())); err != nil && !touched {
					rt.Fatalf("the ledger after %d commits: %v", commits, err)
				}
			},
		})
	})
	t.Logf("%d ends, %d rollbacks, %d archives put back", ends, rolled, restored)
	if rolled == 0 || restored == 0 {
		t.Errorf("%d rollbacks, %d archives put back: want some", rolled, restored)
	}
}
