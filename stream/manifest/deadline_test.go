package manifest_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream/manifest"
)

// A round has the deadline that it gives itself, within the bounds of its plan, or else the plan's.
func TestTheDeadlineOfARound(t *testing.T) {
	task := phasedTask()
	deadline := func(stale, own uint64) (time.Duration, error) {
		task.Plan.StaleMs = stale
		if err := manifest.CheckTask(task); err != nil {
			t.Fatal(err)
		}
		hash, round := goodRound(t, task, 12)
		round.DeadlineMs = own
		at, err := manifest.Follows(task, hash, round)
		return at.Deadline, err
	}
	for _, c := range []struct {
		stale, own uint64
		want       time.Duration
	}{{0, 0, time.Minute}, {90_000, 0, time.Minute}, {90_000, 60_000, time.Minute}, {90_000, 60_001,
		60_001 * time.Millisecond}, {90_000, 90_000, 90 * time.Second}} {
		if got, err := deadline(c.stale, c.own); err != nil || got != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
	for own, stale := range map[uint64]uint64{1: 90_000, 59_999: 90_000, 90_001: 90_000, math.MaxUint64: 90_000,
		60_000: 0} {
		if _, err := deadline(stale, own); err == nil || !strings.Contains(err.Error(), "deadline_ms") {
			t.Errorf("a deadline of %d ms under a plan of 60000 to %d: %v", own, stale, err)
		}
	}
}

// The longest deadline of a plan is none, or at least the plan's own, where that has one.
func TestTheLongestDeadline(t *testing.T) {
	for _, c := range [][2]uint64{{60_000, 59_999}, {60_000, math.MaxUint64}, {0, 60_000}} {
		task := phasedTask()
		task.Plan.DeadlineMs, task.Plan.StaleMs = c[0], c[1]
		if err := manifest.CheckTask(task); err == nil || !strings.Contains(err.Error(), "stale_ms") {
			t.Errorf("deadlines from %d to %d ms: %v", c[0], c[1], err)
		}
	}
}
