package stage

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
)

// attemptOf plays one attempt at which a number of users wait, of whom the announced share sends at once, garbage besides;
// the broker shows behind a report only what has come, and the rest with the first report of the next attempt.
func (c *backlog) play(waiting, garbage, cohort float64, seen float64, sequence *uint64, now time.Time) {
	share := c.share(now)
	valid := math.Max(math.Round(share*waiting), 1)
	c.users = uint64(math.Min(valid, cohort))
	messages := uint64(math.Ceil(float64(c.users) * (1 + garbage)))
	arrived := uint64(valid * (1 + garbage))
	for i := range messages {
		*sequence++
		over := uint64(0)
		if arrived > i+1 {
			over = uint64(seen * float64(arrived-i-1))
		}
		c.saw(*sequence, over, now)
	}
	if arrived > messages {
		*sequence += arrived - messages
	}
}

// Whatever waits, and however little of it the broker shows at once, after three attempts the announced share is that of
// 1.5 to 3 cohorts; garbage does not make it smaller than its part, and when nobody is left behind everybody may join again.
func TestJoinProbabilityFollowsTheCrowd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cohort := float64(rapid.IntRange(1, 5000).Draw(t, "cohort"))
		times := rapid.Float64Range(1, 300).Draw(t, "times")
		garbage := rapid.Float64Range(0, 3).Draw(t, "garbage")
		seen := rapid.Float64Range(0, 1).Draw(t, "seen")
		waiting := math.Ceil(cohort * times)
		var c backlog
		now := time.Unix(1, 0)
		sequence := uint64(1)
		if got := c.open(cohort, time.Hour, now); got != 0 {
			t.Fatalf("the first attempt announces %d, want everybody", got)
		}
		for range 4 {
			c.play(waiting, garbage, cohort, seen, &sequence, now)
			now = now.Add(time.Minute)
			c.open(cohort, time.Hour, now)
		}
		asked := c.share(now) * waiting / cohort
		low, high := math.Min(times, 1.5)/1.35-2/cohort, 3.5+6/cohort
		if asked < low || asked > high {
			t.Fatalf("%.0f wait for %.0f places, garbage %.2f, seen %.2f: %.2f a place are asked, want %.2f to %.2f", waiting, cohort, garbage, seen, asked, low, high)
		}
		for i := 0; c.probability != 0; i++ { // fewer than the cohort are left
			if i == 60 {
				t.Fatalf("still a share of %v after %d attempts that found nobody behind", c.share(now), i)
			}
			c.play(math.Max(1, cohort/2)/c.share(now), 0, cohort, 0, &sequence, now)
			now = now.Add(time.Minute)
			c.open(cohort, time.Hour, now)
		}
	})
}

// An attempt that nobody answers does not keep its share: the next begins where the wait had come to.
func TestAnEmptyAttemptOpensTheNext(t *testing.T) {
	c := backlog{opened: time.Unix(1, 0), probability: stream.JoinProbability(0.001), deadline: time.Hour}
	c.last = c.opened
	if got := c.next(c.opened.Add(time.Hour)); got != 0 {
		t.Errorf("after an hour: %d, want everybody", got)
	}
	if got := c.next(c.opened); got != c.probability {
		t.Errorf("at once: %d, want %d as before", got, c.probability)
	}
}
