package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
)

const commitDim = 1000

// commit has a learner of d = 1000 commit every round to two stores, in turns: one on disk, and one on a file system in
// memory, on which a sync costs nothing.
func commit(ctx context.Context, l *lab) error {
	b, err := startBroker(ctx, l, syncLazily)
	if err != nil {
		return err
	}
	defer b.end()
	dir, err := l.folder()
	if err != nil {
		return err
	}
	disk, err := pebblestore.Open(filepath.Join(dir, "state"), pebblestore.Options{})
	if err != nil {
		return err
	}
	free, err := pebblestore.Open("state", pebblestore.Options{FS: vfs.NewMem()})
	if err != nil {
		return errors.Join(err, disk.Close())
	}
	twin := &twin{Store: disk, free: free, beside: filepath.Join(dir, "beside")}
	rounds := l.of(200, 4)
	const cohort = 64
	w, err := newWorld(ctx, l, b, shape{dim: commitDim, cohort: cohort, rounds: rounds, store: twin})
	if err != nil {
		return errors.Join(err, twin.Close())
	}
	err = func() error {
		send, err := w.newSender()
		if err != nil {
			return err
		}
		for r := range rounds {
			if _, err := send.fill(uint64(r+1), cohort, cohort); err != nil {
				return err
			}
		}
		return w.committed.wait(w.ctx, uint64(rounds))
	}()
	if err := errors.Join(err, w.close(), twin.Close()); err != nil {
		return err
	}
	const group = "Commit of the learner's state"
	l.add(newRow(group, fmt.Sprintf("d = %d, without fsync", commitDim), "ms", twin.took[1]).
		atMost("below 1", twin.took[1].median(), 1))
	l.add(newRow(group, fmt.Sprintf("d = %d, with fsync", commitDim), "ms", twin.took[0]).
		beside("fsync of as many bytes, ms", twin.took[0], twin.synced))
	return nil
}

// A twin commits to two stores and remembers how long each took.
type twin struct {
	state.Store // on disk
	free        state.Store
	beside      string // file of the yardstick
	took        [2]series
	synced      series
}

func (t *twin) Commit(ctx context.Context, next state.Checkpoint, entries []state.Entry) error {
	for i, s := range [...]state.Store{t.Store, t.free} {
		begun := time.Now()
		if err := s.Commit(ctx, next, entries); err != nil {
			return err
		}
		t.took[i] = append(t.took[i], milliseconds(time.Since(begun)))
	}
	data, err := next.MarshalBinary()
	if err != nil {
		return err
	}
	took, err := appendSynced(t.beside, data)
	t.synced = append(t.synced, milliseconds(took))
	return err
}

func (t *twin) Close() error { return errors.Join(t.Store.Close(), t.free.Close()) }

// appendSynced appends to a file and syncs it, as the least that a commit does; opening the file is not counted.
func appendSynced(path string, data []byte) (time.Duration, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync())
	return time.Since(begun), errors.Join(err, f.Close())
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
