package kills

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/procs"
)

// TestEndlessKills: a task without an end goes on for 10^4 rounds while its processes and its broker are killed.
// What holds of other tasks holds, and the learner's checkpoint has one size. How long rounds take, and what
// folders hold, is printed.
func TestEndlessKills(t *testing.T) {
	s := seed(t)
	p := plan{rounds: 25, cohort: 100, publishers: 2, rows: 2500, lease: time.Second, endless: true}
	kills, spacing := 5, 900*time.Millisecond
	if longtest.Run(t, "all but 25 rounds of 10^4 of a task without an end") {
		p.rounds, p.rows, p.lease = *roundsFlag, 70**roundsFlag, 2*time.Second
		kills, spacing = 1<<30, time.Minute
	}
	k := &killer{rng: rand.New(rand.NewPCG(s, 1<<34)), weights: everybody, spacing: spacing, pause: time.Second}
	campaign(t, p, k, kills)
}

// A stretch is a tenth of a campaign without an end.
type stretch struct {
	round   uint64
	at      time.Time
	kills   int
	learner int64 // bytes of its folder
}

// stretch notes the end of a stretch.
func (f *fleet) stretch(k *killer, w *witness) {
	every := uint64(f.rounds / 10)
	if at := w.newestRound(); f.endless && at >= uint64(len(f.pace))*every {
		f.pace = append(f.pace, stretch{round: at, at: time.Now(), kills: k.kills, learner: size(f.path("state"))})
		if n := len(f.pace); n > 1 {
			last, one := f.pace[n-2], f.pace[n-1]
			f.t.Logf("MEASURED: rounds %d to %d: %.0f ms a round, %d kills, learner's folder %.1f MB", last.round, one.round,
				one.at.Sub(last.at).Seconds()*1000/float64(max(1, one.round-last.round)), one.kills-last.kills,
				float64(one.learner)/1e6)
		}
	}
}

// size returns how many bytes the files of a folder have, as far as they can be seen.
func size(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went just now
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// finish ends a task without an end as soon as everybody runs.
func (f *fleet) finish() {
	for _, r := range f.roles {
		if f.ending || !r.Running() && !r.over {
			return
		}
	}
	out, err := exec.CommandContext(procs.Within(f.t, patience), programs.Learner, "finish", "--state",
		f.path("state")).CombinedOutput()
	if f.ending = err == nil; err != nil {
		f.t.Logf("learner finish: %v: %s", err, out)
	}
}

// learnedAs lists where the learner and one that was not told to finish differ in what they learned and charged,
// and where the size of the learner's checkpoints was not one.
func (f *fleet) learnedAs(dir string) (differences []string) {
	mine, err := load(f.t, f.path("state"))
	if err != nil {
		return []string{err.Error()}
	}
	theirs, err := load(f.t, dir)
	if err != nil {
		return []string{err.Error()}
	}
	if mine.Cursor != theirs.Cursor || !bytes.Equal(mine.Algorithm, theirs.Algorithm) {
		differences = append(differences, fmt.Sprintf("at %+v the learner is not what an undisturbed one is at %+v",
			mine.Cursor, theirs.Cursor))
	}
	_, myLedger := f.disk(f.path("state"))
	_, theirLedger := f.disk(dir)
	if n := len(myLedger); len(theirLedger) < n || !slices.Equal(myLedger, theirLedger[:n]) {
		differences = append(differences, "the ledger is not that of an undisturbed learner")
	}
	for _, c := range f.states {
		if c.Cursor.Round > 1 && len(c.Algorithm) != len(mine.Algorithm) {
			differences = append(differences, fmt.Sprintf("%d bytes of state at round %d, %d at the end", len(c.Algorithm),
				c.Cursor.Round, len(mine.Algorithm)))
		}
	}
	return differences
}
