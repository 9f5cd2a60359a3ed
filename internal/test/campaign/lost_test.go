package campaign

import (
	"strings"
	"testing"
	"time"
)

// away has the publishers be away while records are lost, and come back when all faults are over.
var away = []op{{300 * time.Millisecond, "crash", 3, 0}, {0, "crash", 4, 0}, {time.Second, "lose these", 0, 0},
	{time.Second, "pass", 0, 0}}

// TestLostRecords: the broker loses one record, and the task goes on: its writer, if it lives, puts the
// record again, or the stage declares the round void. Without that all processes would wait for ever.
func TestLostRecords(t *testing.T) {
	marked := small
	marked.Marks = sharedMarks
	for _, c := range []struct {
		name string
		plan plan
		lose []string
		ops  []op
		real int // batches, that which was lost among them
	}{
		{"the task, while a round waits", small, []string{name.Task()}, away, 3},
		{"the round that waits", small, []string{name.Round(1)}, away, 3},
		{"the Open of a round that waits", small, []string{name.Open(1, 1)}, away, 3},
		// Another process takes its number, and users who had sent to it send to that.
		{"the Open, and the stage dies", small, []string{name.Open(1, 1)}, []op{
			{800 * time.Millisecond, "lose these", 0, 0}, {0, "crash", 1, 0}, {0, "crash", 2, 0}, {time.Second, "pass", 0, 0}},
			3},
		{"a batch before the learner reads it", marked, []string{name.Batch(1)}, []op{
			{300 * time.Millisecond, "crash", 0, 0}, {10 * time.Second, "lose these", 0, 0}, {time.Second, "pass", 0, 0}}, 4},
		{"the lease", small, []string{name.Lease()}, []op{{300 * time.Millisecond, "lose these", 0, 0}}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.plan.Loser = losesRecords
			r := play(t, c.plan, c.ops, broken{loses: c.lose})
			if len(r.violations) > 0 || !r.ended || r.real != c.real || len(r.said) > 0 {
				t.Errorf("ended %v, %d real batches, want %d; lost %v, said %v\n%s", r.ended, r.real, c.real, r.gone, r.said,
					r.violations)
			}
		})
	}
}

// TestOlderState: a learner that is given an older copy of its disk says so and ends; allowed to apply the broker's
// records again, it becomes what it was.
func TestOlderState(t *testing.T) {
	for _, accept := range []bool{false, true} {
		p := small
		p.Loser, p.Accept = losesAll, accept
		// The copy is of before the first round was over.
		r := play(t, p, []op{{time.Second, "pass", 0, 0}, {20 * time.Second, "restore", 0, 0}, {time.Second, "start", 0, 0},
			{time.Second, "pass", 0, 0}}, broken{})
		if len(r.violations) > 0 || r.ended != accept || r.said["the learner's state is older"] == 0 {
			t.Errorf("accept %v: ended %v, said %v\n%s", accept, r.ended, r.said, r.violations)
		}
	}
}

// TestOlderStateAndBroker: the learner's disk goes back to before the first round was over, and the broker loses what
// came of that round, and the Round that was announced since: no record shows it to the learner, so it waits again for
// the batch of the first.
func TestOlderStateAndBroker(t *testing.T) {
	p := small
	p.Loser, p.Rows = losesAll, 3 // too few for the second round
	r := play(t, p, []op{{time.Second, "pass", 0, 0}, {20 * time.Second, "crash", 1, 0}, {0, "crash", 2, 0},
		{0, "lose these", 0, 0}, {0, "restore", 0, 3},
		{time.Second, "pass", 0, 0}}, broken{loses: []string{name.Round(2), name.Batch(1), name.Claim(1), name.Close(1, 1),
		name.Open(1, 1)}})
	if len(r.violations) > 0 || r.ended || len(r.said) > 0 {
		t.Errorf("ended %v, %d real batches, said %v\n%s", r.ended, r.real, r.said, r.violations)
	}
}

// TestTaskMadeAnew: the learner's folder is emptied, and the broker loses all that it announced: no record shows it the
// first task, so it makes another of the same name. Devices and stages that pinned the first refuse it, and where a
// batch of the first comes, the learner says that its folder was replaced.
func TestTaskMadeAnew(t *testing.T) {
	p := small
	p.Loser = losesAll
	r := play(t, p, []op{{2 * time.Second, "crash", 0, 0}, {0, "lose these", 0, 0}, {0, "restore", 0, -1},
		{time.Second, "start", 0, 0},
		{time.Minute, "pass", 0, 0}}, broken{loses: []string{name.Task(), name.Round(1)}})
	if len(r.violations) > 0 || r.ended || r.said[replaced] == 0 {
		t.Errorf("ended %v, %d real batches, said %v\n%s", r.ended, r.real, r.said, strings.Join(r.violations, "\n"))
	}
}

// TestOlderBroker: a learner whose broker lost what announced the task and its rounds, and gives their sequences
// again, says so and ends.
func TestOlderBroker(t *testing.T) {
	p := small
	p.Loser = losesRecords
	r := play(t, p, []op{{1500 * time.Millisecond, "roll back", 2, 7}, {time.Minute, "pass", 0, 0}}, broken{})
	if len(r.violations) > 0 || r.said["the broker is older"] == 0 {
		t.Errorf("ended %v, %d real batches, said %v\n%s", r.ended, r.real, r.said, r.violations)
	}
}
