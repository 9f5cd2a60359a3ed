package service

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A site has users come one after another: so many a day before its traffic falls, and so many after.
type site struct {
	before, after float64
	falls         time.Duration
}

const day = 24 * time.Hour

// until returns when n users have come since a time.
func (s site) until(since time.Duration, n uint64) time.Duration {
	if fast := time.Duration(float64(n) / s.before * float64(day)); since+fast <= s.falls {
		return since + fast
	}
	early := math.Floor(max(0, s.falls-since).Seconds() / day.Seconds() * s.before)
	return max(since, s.falls) + time.Duration((float64(n)-early)/s.after*float64(day))
}

// closes returns when a round closes, and with how many users: full, or past its deadline with the minimum. A late
// round stays open while users come within half a minute, for as long as its deadline again at most.
func (s site) closes(since, deadline time.Duration, cohort, minimum uint64) (at time.Duration, users uint64) {
	if full := s.until(since, cohort); full <= since+deadline {
		return full, cohort
	}
	at = max(since+deadline, s.until(since, minimum))
	if s.until(at, 1)-at < 30*time.Second {
		at = min(at+deadline, s.until(since, cohort))
	}
	for users = minimum; users < cohort && s.until(since, users+1) <= at; users++ {
	}
	return at, users
}

// TestTrafficThatFalls: of a site of 10^6 users a day, whose cohorts have grown as large as the plan's, 1,000 come from
// the fourth day on, or 30,000. No step takes more than a day, the round that was open at the fall included, and
// cohorts follow at once; where traffic is back, they do too.
func TestTrafficThatFalls(t *testing.T) {
	for _, s := range []site{{1e6, 1000, 3*day + time.Hour}, {1e6, 30_000, 3*day + time.Hour},
		{1e6, 1000, 3*day + 100*time.Millisecond}, {1000, 1e6, 20 * day}} {
		plan := &wire.Plan{Continuous: wire.Continuous_CONTINUOUS_ADAPTIVE, DeadlineMs: uint64(time.Hour.Milliseconds()),
			StaleMs: uint64(day.Milliseconds())}
		phase := &wire.Phase{Minimum: 250, Top: 64_000, Cohort: 64_000}
		alg, err := method.NewPractical(method.PracticalConfig{Layout: practical.Layout{MomentUsers: 250, Rounds: 1,
			Base: 250, Top: 64_000, Unit: 8},
			Problem: practical.Problem{Loss: convex.Declaration{Name: "logistic"}, Features: 1, Bound: 1, Intercept: 1,
				Users: 512_000, Continuous: true}})
		if err != nil {
			t.Fatal(err)
		}
		if err := alg.Step(method.Estimate{Gradient: make([]float64, 3), Users: 250, PrivacyVariance: 1e-4}); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(27, 5))
		c := &core{task: &wire.Task{Plan: plan}, round: &wire.Round{Round: 2}, place: manifest.Place{Plan: plan, Phase: phase,
			Cohort: 250}}
		now, steps, most := time.Duration(0), map[int]int{}, uint64(0)
		for rounds := 0; now < 40*day && rounds < 100_000; rounds++ {
			own := time.Duration(max(c.round.DeadlineMs, plan.DeadlineMs)) * time.Millisecond
			at, users := s.closes(now, own, c.place.Cohort, phase.Minimum)
			if took := at - now; took > day {
				t.Fatalf("%+v: the round of %d that opened at %v took %v, and has %d users", s, c.place.Cohort, now, took, users)
			}
			if now > s.falls+2*day && c.place.Cohort > max(phase.Minimum, uint64(s.after)) {
				t.Fatalf("%+v: at %v a round asks %d", s, now, c.place.Cohort)
			}
			sd := 9 / float64(users)
			if err := alg.Step(method.Estimate{Gradient: []float64{sd * r.NormFloat64(), sd * r.NormFloat64()}, Users: users,
				PrivacyVariance: sd * sd}); err != nil {
				t.Fatal(err)
			}
			p := pace{took: at - now, whole: true}
			next := c.place
			next.Cohort = c.cohort(next, alg.Query().Cohort, users, p)
			deadline := c.deadline(next, users, p)
			c.round = &wire.Round{Round: c.round.Round + 1, DeadlineMs: deadline}
			if c.place = next; at < s.falls {
				most = max(most, next.Cohort)
			}
			now = at
			steps[int(now/day)]++
		}
		for d := range 38 {
			if steps[d]+steps[d+1] == 0 {
				t.Errorf("%+v: no step on days %d and %d", s, d+1, d+2)
			}
		}
		t.Logf("%+v: largest cohort %d before, %d in the end; steps a day at first %d, in the end %d", s, most,
			c.place.Cohort, steps[1], steps[38])
	}
}
