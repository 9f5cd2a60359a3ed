package task_test

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/panlearn/panlearn/learner/task"
)

// TestKeptSnapshots: which models are kept is read from the file, has defaults and limits, and is no part of what
// devices agree to.
func TestKeptSnapshots(t *testing.T) {
	file, err := os.ReadFile("../../deploy/tasks/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := task.Parse(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	declared, err := plain.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	day, round := task.Every{Time: 24 * time.Hour}, task.Every{Rounds: 1}
	endless := "schedule.continuous=adaptive"
	for _, one := range []struct {
		sets []string
		want task.Snapshots
	}{
		{nil, task.Snapshots{Every: round, Keep: 30}},
		{[]string{endless}, task.Snapshots{Every: day, Keep: 30}},
		{[]string{"state.snapshots.keep=7", endless}, task.Snapshots{Every: day, Keep: 7}},
		{[]string{"state.snapshots.every=90m"}, task.Snapshots{Every: task.Every{Time: 90 * time.Minute}, Keep: 30}},
		{[]string{"state.snapshots.every=100"}, task.Snapshots{Every: task.Every{Rounds: 100}, Keep: 30}},
		{[]string{"state.snapshots.every=1 round"}, task.Snapshots{Every: task.Every{Rounds: 1}, Keep: 30}},
		{[]string{"state.snapshots.every=20 rounds", "state.snapshots.keep=1000"},
			task.Snapshots{Every: task.Every{Rounds: 20}, Keep: 1000}},
	} {
		spec, err := task.Parse(file, one.sets)
		if err != nil {
			t.Errorf("%v: %v", one.sets, err)
			continue
		}
		if got := spec.Kept(); got != one.want {
			t.Errorf("%v: %+v, want %+v", one.sets, got, one.want)
		}
		got, err := spec.Canonical()
		if err != nil || !slices.Contains(one.sets, endless) && !bytes.Equal(got, declared) {
			t.Errorf("%v changes the declaration: %v", one.sets, err)
		}
	}
	for set, want := range map[string]string{
		"state.snapshots.keep=1001":     "task: state.snapshots.keep = 1001: want a whole number from 1 to 1000",
		"state.snapshots.keep=-1":       "task: state.snapshots.keep = -1: want a whole number from 1 to 1000",
		"state.snapshots.every=1s":      "task: state.snapshots.every = 1s: want a duration from 1m such as 24h, or a whole number of rounds from 1 such as 100 rounds",
		"state.snapshots.every=0":       "task: state.snapshots.every = 0: want a duration from 1m such as 24h, or a whole number of rounds from 1 such as 100 rounds",
		"state.snapshots.every=a while": "task: state.snapshots.every = a while: want a duration from 1m such as 24h, or a whole number of rounds from 1 such as 100 rounds",
		"state.snapshot.keep=1":         "task: state.snapshot: want one of the keys snapshots",
	} {
		if _, err := task.Parse(file, []string{set}); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", set, err, want)
		}
	}
}
