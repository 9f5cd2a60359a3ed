package runadmin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"strings"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// What a commit takes of a disk at most, beside four times its own bytes for log, table and a compaction; and how many
// of them are too few to be calm.
const (
	commitBytes = 1 << 20
	fewCommits  = 100
)

// folder examines the learner's state folder. A running learner is asked; otherwise the folder is opened read-only.
func (v *visit) folder(ctx context.Context) {
	info, err := os.Stat(v.StateDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.find("state folder", natsadmin.Warning,
			"%s is not there: learner run makes it; if a task should be in it, see that its disk is mounted", v.StateDir)
		return
	case err != nil:
		v.find("state folder", natsadmin.Failure, "%v: run doctor as the user of the learner", err)
		return
	case !info.IsDir():
		v.find("state folder", natsadmin.Failure, "%s is a file: name the folder of the learner", v.StateDir)
		return
	case disk.Shared(info):
		v.find("state folder", natsadmin.Warning, "mode %v: others than its user may reach it: chmod 700", info.Mode().Perm())
	default:
		v.find("state folder", natsadmin.OK, "its user's alone")
	}
	if !v.format() {
		return
	}
	if conn, err := statedir.Dial(ctx, v.StateDir); err == nil {
		conn.Close()
		v.running = true
	}
	var at state.Checkpoint
	var archive error // what is amiss with the whole ledger
	err = statedir.Copy(ctx, statedir.Where{StateDir: v.StateDir, Silence: v.silence}, func(c state.Checkpoint,
		entries iter.Seq2[state.Entry, error], _ iter.Seq2[state.Kept, error]) error {
		at = c // whole, and the newest entries lead to its sums: what is amiss now is of the archive, or of the sums before
		archive = c.VerifyLedger(state.Ledger{}, entries)
		return ctx.Err()
	})
	switch {
	case errors.Is(err, state.ErrLocked):
		v.find("state lock", natsadmin.Failure,
			"a process holds the folder and does not answer (%v): see which with `fuser %s/LOCK`, and let it go on (kill -CONT) or end it; "+
				"leave the folder as it is", err, v.StateDir)
	case errors.Is(err, fs.ErrPermission):
		v.find("state folder", natsadmin.Failure, "%v: run doctor as the user of the learner", err)
	case errors.Is(err, state.ErrEmpty):
		v.find("ledger", natsadmin.Warning, "nothing is committed: has learner run begun the task here?")
	case err != nil:
		v.find("ledger", natsadmin.Failure,
			"%v: do not start the learner on it; put a backup in its place with learner restore", err)
	case v.running:
		v.find("state lock", natsadmin.OK, "a learner holds the folder and answers")
	default:
		v.find("state lock", natsadmin.OK, "nobody holds the folder: no learner runs")
	}
	size := 0
	if err == nil {
		v.committed(at, archive)
		encoded, _ := at.MarshalBinary() // it was decoded
		size = len(encoded)
	}
	v.disk(size)
}

// format reports whether this build reads the folder, and adds a finding about it.
func (v *visit) format() bool {
	if err := pebblestore.CheckFormat(v.StateDir); err != nil {
		v.find("state format", natsadmin.Failure, "%v", err)
		return false
	}
	v.find("state format", natsadmin.OK, "format %d, which this build reads", pebblestore.FolderFormat)
	return true
}

// committed keeps what the folder holds, and adds a finding about the verification of its ledger.
func (v *visit) committed(at state.Checkpoint, archive error) {
	view, err := statedir.Of(at)
	if errors.Is(err, learner.ErrOtherBuild) {
		v.find("optimizer state", natsadmin.Failure, "%v", err)
		return
	}
	if err != nil {
		v.find("ledger", natsadmin.Failure,
			"%v: do not start the learner on it; put a backup in its place with learner restore", err)
		return
	}
	v.state = &view
	switch {
	case errors.Is(archive, state.ErrArchive):
		v.find("ledger", natsadmin.Failure,
			"%v; the learner goes on without them, its sums and newest entries are whole, and no backup can be made", archive)
	case archive != nil:
		v.find("ledger", natsadmin.Failure,
			"%v; the learner does not look at old entries and goes on, but what was spent may be more than it says: "+
				"put a backup in the folder's place with learner restore", archive)
	default:
		v.find("ledger", natsadmin.OK, "%d entries, chain intact, and it ends where the checkpoint of round %d says",
			at.Ledger.Head.Length, at.Cursor.Round)
	}
	switch {
	case v.Task != "" && string(v.Task) != view.Task.Name:
		v.find("task", natsadmin.Failure, "the state folder holds task %q, not %q: name its own folder for each task",
			view.Task.Name, v.Task)
		v.state = nil
	case v.Spec != nil:
		v.drift("the task in the state folder", view.Task.Declaration)
	}
}

// disk checks that there is room for commits of a checkpoint of so many bytes.
func (v *visit) disk(checkpoint int) {
	free, err := v.free(v.StateDir)
	room := uint64(commitBytes + 4*checkpoint)
	switch {
	case err != nil:
		v.find("disk", natsadmin.Warning, "cannot tell how much is free: %v", err)
	case free < room:
		v.find("disk", natsadmin.Failure,
			"%s free, and a commit may take %s: the learner would stop with exit code 75: make room", megabytes(free),
			megabytes(room))
	case free < fewCommits*room:
		v.find("disk", natsadmin.Warning, "%s free, and a commit may take %s: make room soon", megabytes(free),
			megabytes(room))
	default:
		v.find("disk", natsadmin.OK, "%s free, and a commit may take %s", megabytes(free), megabytes(room))
	}
}

func megabytes(n uint64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// lookedBack is the number of newest committed rounds for which the broker is checked to have the records; retention
// keeps more.
const lookedBack = 20

// lost returns the records of the newest committed rounds that the broker does not hold.
func (v *visit) lost(ctx context.Context, conn *natsjs.Conn, committed uint64) (lost []string, err error) {
	for r := committed; r > 0 && committed-r < lookedBack; r-- {
		for _, subject := range []string{v.Task.Round(stream.Round(r)), v.Task.Batch(stream.Round(r))} {
			_, err := conn.Get(ctx, subject)
			if errors.Is(err, stream.ErrNotFound) {
				lost = append(lost, subject)
			} else if err != nil {
				return nil, err
			}
		}
	}
	return lost, nil
}

// cursor compares what is committed with the rounds and the batch on the broker.
func (v *visit) cursor(ctx context.Context, conn *natsjs.Conn) {
	at := v.state.Checkpoint.Cursor
	newest := uint64(0)
	m, err := conn.Latest(ctx, v.Task.Rounds())
	if err == nil {
		var a stream.Address
		a, err = stream.ParseSubject(m.Subject)
		newest = uint64(a.Round)
	}
	if err != nil && !errors.Is(err, stream.ErrNotFound) {
		v.find("cursor", natsadmin.Warning, "cannot read rounds: %v", err)
		return
	}
	if v.running { // and has gone on meanwhile
		if s, err := statedir.StatusOf(ctx, v.StateDir); err == nil && s.Round > at.Round {
			v.find("cursor", natsadmin.OK, "the learner goes on: round %d is committed, round %d is announced", s.Round, newest)
			return
		}
	}
	lost, err := v.lost(ctx, conn, at.Round)
	if err != nil {
		v.find("cursor", natsadmin.Warning, "cannot read records: %v", err)
		return
	}
	batch := error(nil)
	if at.Round > 0 {
		m, batch = conn.Get(ctx, v.Task.Batch(stream.Round(at.Round)))
	}
	switch {
	case newest < at.Round, errors.Is(batch, stream.ErrNotFound), at.Round > 0 && batch == nil &&
		stream.HashOf(m.Data) != stream.Hash(at.BatchHash):
		v.find("cursor", natsadmin.Failure,
			"the broker is older than the state folder: round %d is committed here, and round %d is the newest there: restore its streams "+
				"from a copy at least as new as the folder (docs/how-to/runbook.md, \"state folder and broker of different times\")",
			at.Round, newest)
	case len(lost) > 0:
		v.find("cursor", natsadmin.Failure,
			"the broker lost records that this folder has committed: %s: restore its streams from a copy, or let the learner go on: the model has "+
				"them (docs/how-to/runbook.md, \"the broker lost records\")", strings.Join(lost, ", "))
	case newest > at.Round+1:
		v.find("cursor", natsadmin.Failure,
			"the state folder is older than the broker: round %d is committed here, and round %d is announced there: put the newest copy back, "+
				"or start once with learner run --accept-rollback", at.Round, newest)
	case v.state.Checkpoint.Ended():
		v.find("cursor", natsadmin.OK, "the task has ended after round %d", at.Round)
	case newest == at.Round && !v.running:
		v.find("cursor", natsadmin.Warning, "round %d is committed and round %d is not announced: start the learner",
			at.Round, at.Round+1)
	case !v.running:
		v.find("cursor", natsadmin.Warning,
			"round %d is committed, round %d is announced, and no learner runs on this folder: start it", at.Round, newest)
	default:
		v.find("cursor", natsadmin.OK, "round %d is committed, round %d is announced", at.Round, max(newest, at.Round))
	}
}
