package campaign

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/longtest"
)

// long is a plan that goes on for years: two users a round, or one who waited.
var long = plan{Rounds: 1, Cohort: 2, Minimum: 1, Deadline: 5 * time.Second, Publishers: 3, Rows: 8,
	Pace: 700 * time.Millisecond, Bundle: 1,
	Endless: true, Years: true, Seed: 3}

// removal are sweeps that are cut short among rounds, attempts and batches, and one that ends; then those come back
// who were away.
var removal = []op{{0, "sweep", 0, 10}, {0, "sweep", 0, 20}, {0, "sweep", 0, 40}, {0, "sweep", 0, 0},
	{time.Second, "return", 0, 0}}

// TestYears: more rounds than the broker keeps are over, old ones are removed, and the usual faults hit a task that
// goes on: an old round is put again and the lease lost, a stage that was suspended since the first rounds goes on,
// processes die between two sweeps, the learner's disk goes back.
func TestYears(t *testing.T) {
	longtest.Goroutines(t, "TestCampaigns")
	ms := time.Millisecond
	p := long
	p.Marks, p.Loser, p.Accept = apartMarks, losesAll, true
	r := play(t, p, slices.Concat(removal, []op{
		{0, "crash", 2, 0}, {0, "old round", 0, 4}, {0, "lose", 0, 0}, {0, "marks", 1, 0}, {0, "start", 2, 0},
		{0, "start", 5, 0}, {0, "advance", 0, 0},
		{0, "wake", 1, 0}, {0, "age", 0, 0}, {0, "trap", 2, 0}, {0, "start", 4, 0}, {30 * time.Second, "start", 2, 0},
		{time.Second, "sweep", 0, 4},
		{300 * ms, "lose", 0, 0}, {0, "trap", 1, 21}, {400 * ms, "sweep", 0, 0}, {800 * ms, "crash", 0, 0},
		{900 * ms, "sweep", 0, 8}, {time.Second, "reboot", 0, 9},
		{0, "start", 0, 0}, {0, "trap", 2, 5}, {2 * time.Second, "old marks", 1, 0}, {time.Second, "sweep", 0, 0},
		{time.Second, "old disk", 0, 0}, {0, "start", 0, 0}, {time.Second, "sweep", 0, 0}, {20 * time.Second, "pass", 0, 0},
	}), broken{})
	if len(r.violations) > 0 || r.said[older] == 0 || r.sweeps < 4 || r.short < 4 || r.swept < 150 {
		t.Errorf("%d sweeps removed %d records, %d were cut short; said %v\n%s", r.sweeps, r.swept, r.short, r.said,
			strings.Join(r.violations, "\n"))
	}
}

// TestYearsOfCampaigns: as TestCampaigns, after years.
func TestYearsOfCampaigns(t *testing.T) {
	if !longtest.Run(t, "40 campaigns after 1,000 rounds each") {
		return
	}
	more := slices.Concat(verbs, []string{"sweep", "sweep", "sweep", "age", "age", "old round", "old round", "old disk",
		"old marks", "wake", "start", "start"})
	var all sum
	checks(t, 40, func(rt *rapid.T) {
		flip := func(label string) bool { return uniform(rt, label, 0, 1) == 1 }
		p := long
		p.Sealed, p.Reorder, p.Gateway, p.Lossy, p.Accept = flip("sealed"), flip("reorder"), flip("gateway"), flip("lossy"),
			flip("accept")
		p.Afford, p.Marks, p.Loser = uniform(rt, "afford", 0, 3), uniform(rt, "marks", 0, marksKinds-1),
			loser(uniform(rt, "loser", 0, int(loserKinds)-1))
		p.Pace, p.Seed = time.Duration(uniform(rt, "pace", 0, 10))*100*time.Millisecond, uint64(uniform(rt, "seed", 0, 1<<20))
		var ops []op
		if flip("calm") {
			ops = removal
		}
		ops = slices.Concat(ops, drawOps(rt, more))
		r := play(t, p, ops, broken{})
		all.add(p, ops, r)
		if len(r.violations) > 0 {
			rt.Fatalf("%s\nlost %v, said %v, %s", strings.Join(r.violations, "\n"), r.gone, r.said, describe(p, ops))
		}
	})
	t.Log(&all)
	if all.campaigns >= 40 && (all.said[older] == 0 || all.short == 0 || all.void == 0 || all.reopened == 0 ||
		all.unknown == 0) {
		t.Errorf("these campaigns did not meet what they are for: %v", &all)
	}
}
