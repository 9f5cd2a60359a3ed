package kills

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/procs"
)

// before is the last commit before what a release is made of: the programs of that day said no version, and their wire
// format was 1, as it is now. Upgrades from it are not promised; they are what can be tried before there is a release.
const before = "1d658df351e188d21b60da69ad43877e862cd3f1"

// oldPrograms builds the commands of that commit. It skips the test where the history is not at hand.
func oldPrograms(t *testing.T) *procs.Programs {
	t.Helper()
	if out, err := exec.Command("git", "cat-file", "-t", before).Output(); err != nil ||
		strings.TrimSpace(string(out)) != "commit" {
		t.Skipf("NOT RUN: upgrade and rollback: commit %s is not in this clone: git fetch --unshallow", before)
	}
	dir := t.TempDir()
	root, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Fatal(err)
	}
	script := `git -C "$1" archive "$2" | tar -x -C "$3" && cd "$3" && mkdir bin && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -o bin/ ./cmd/learner ./cmd/ingest`
	if out, err := exec.Command("sh", "-c", script, "sh", strings.TrimSpace(string(root)), before,
		dir).CombinedOutput(); err != nil {
		t.Fatalf("build the programs of %s: %v\n%s", before, err, out)
	}
	return &procs.Programs{Learner: filepath.Join(dir, "bin", "learner"), Ingest: filepath.Join(dir, "bin", "ingest")}
}

// program returns the program of a role.
func (r *role) program(p *procs.Programs) string {
	if r.kind == "learner" {
		return p.Learner
	}
	return p.Ingest
}

// A change replaces the programs of roles, once a round is announced. Each is asked to stop, and starts with the same
// flags and folders before the next one is.
type change struct {
	round uint64
	roles []string
	to    *procs.Programs
}

// changing runs a fleet to its end through changes. It returns how many lives were ended by them.
func (f *fleet) changing(changes []change, w *witness) (replaced int) {
	f.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ctx := procs.Within(f.t, patience)
	for ; !f.over(); <-tick.C {
		if ctx.Err() != nil {
			f.t.Fatalf("the task has not ended, and %d changes were not made: %s", len(changes), f.doing())
		}
		f.tend()
		if len(changes) == 0 || w.newestRound() < changes[0].round {
			continue
		}
		for _, name := range changes[0].roles {
			r := f.role(name)
			if r.over || r.Terminate() != nil {
				f.t.Fatalf("%s is over before round %d: the campaign has too few rows", name, changes[0].round)
			}
			exit, err := r.Wait(f.t.Context())
			if err != nil {
				f.t.Fatal(err)
			}
			r.Use(r.program(changes[0].to))
			if err := r.Start(); err != nil {
				f.t.Fatal(err)
			}
			replaced++
			f.t.Logf("round %d: %s stopped (%v), and starts as %s", w.newestRound(), name, exit, r.program(changes[0].to))
		}
		changes = changes[1:]
	}
	if len(changes) > 0 {
		f.t.Errorf("the task ended before %d changes were made", len(changes))
	}
	return replaced
}

// TestUpgradeAndRollback: while devices report, stages, learner, devices and relay are replaced by another version, one
// after another, and some by the older one again. Every round of every mixture is released, nobody is lost who was
// acknowledged, and nobody is counted twice.
func TestUpgradeAndRollback(t *testing.T) {
	if !longtest.Run(t, "upgrade and rollback between two versions, while devices report") {
		return
	}
	old := oldPrograms(t)
	stages := []string{"stage0", "stage1"}
	for campaign, p := range map[string]struct {
		relayed bool
		changes []change
	}{
		"to the broker": {changes: []change{
			{4, stages, programs},                  // old devices and learner, new stages
			{8, []string{"learner"}, programs},     // an old learner's folder
			{12, []string{"publisher1"}, programs}, // an old device's folder
			{16, stages, old},                      // back, with a learner and devices that are new
			{20, []string{"learner"}, old},         // back, on the folder that the new one wrote
			{24, []string{"publisher1"}, old},
			{28, stages, programs}, {30, []string{"learner", "publisher0", "publisher1", "publisher2"}, programs},
		}},
		"over a relay": {relayed: true, changes: []change{
			{4, []string{"relay"}, programs}, // old devices, a new relay, an old stage
			{8, []string{"publisher1"}, programs},
			{12, []string{"relay"}, old}, // new devices, an old relay
			{16, stages, programs},
			{20, []string{"relay", "learner", "publisher0", "publisher2"}, programs},
		}},
	} {
		t.Run(campaign, func(t *testing.T) {
			f := newFleet(t, plan{rounds: 36, cohort: 20, publishers: 3, rows: 1000, lease: 2 * time.Second, relayed: p.relayed})
			for _, r := range f.roles {
				if r.kind != "broker" {
					r.Use(r.program(old))
				}
			}
			w := watch(t, f.broker.URL())
			replaced := f.changing(p.changes, w)
			w.look(t.Context())
			w.close()
			e := f.collect(w)
			violations, s := e.audit()
			for _, v := range append(append(violations, w.violations...), f.replay(e)...) {
				t.Error(v)
			}
			if s.void > 0 || s.users < 36*15 || s.counted+s.unknown < s.users {
				t.Errorf("%+v: want every round released, and every user of a batch among those who sent", s)
			}
			t.Logf("%d lives replaced; %d rounds, %d of them void, %d attempts opened again; %d users in batches, %d counted, %d uncounted, %d unknown",
				replaced, len(e.rounds), s.void, s.reopened, s.users, s.counted, s.uncounted, s.unknown)
		})
	}
}
