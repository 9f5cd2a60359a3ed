package campaign

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream/wire"
)

// units returns the number of rows of a user, each with a coordinate of its own.
func (p plan) units() int { return max(1, p.Units) }

// silos returns the number of organisations, 0 where users report for themselves.
func (p plan) silos() int {
	if p.Units == 0 {
		return 0
	}
	return p.Publishers
}

func (p plan) trust() wire.Trust {
	if p.Local {
		return wire.Trust_TRUST_LOCAL
	}
	return wire.Trust_TRUST_SHUFFLE
}

// declare returns the plan's task file.
func (p plan) declare(sealed string) string {
	all := fmt.Sprintf(declaration, p.users()*p.units(), sealed, p.wanted())
	if p.Units == 0 {
		return all
	}
	schedule := fmt.Sprintf("silo: {count: %d, units: %d, reports: %d}\nschedule: {plan: proved, interactive: %t}",
		p.Publishers, p.Rows*p.Units, p.Cohort, p.Together > 0)
	all = strings.Replace(all, fmt.Sprintf("schedule: {users: %d, plan: proved}", p.wanted()), schedule, 1)
	trust := "trust: shuffle, honest_fraction: 1"
	if p.Local {
		trust = "trust: local"
	}
	return strings.Replace(all, "trust: shuffle", trust, 1)
}

// whole reports whether a user is all rows of an organisation, which take part in every round.
func (p plan) whole() bool { return p.Units > 0 && p.Together > 0 }

// drawSilos returns a plan of organisations with blocks of rows, each of which is in one round, or with one
// block of all of their rows.
func drawSilos(t *rapid.T) plan {
	p := drawPlan(t)
	p.Units, p.Local = uniform(t, "units", 2, 3), uniform(t, "local", 0, 3) > 0
	p.Publishers = uniform(t, "silos", 2, 4)
	p.Cohort = uint64(uniform(t, "reports", 2, p.Publishers))
	p.Together, p.Again, p.First, p.Endless, p.Gateway, p.Bundle, p.Rounds = 0, false, false, false, false, 1,
		max(p.Rounds, 2)
	p.Minimum = min(p.Minimum, p.Cohort)
	if p.Deadline == 0 {
		p.Minimum = p.Cohort
	}
	p.Rows = uniform(t, "blocks", 2, 6)
	if uniform(t, "whole", 0, 1) == 1 {
		p.Rounds, p.Together, p.Again, p.Rows = 0, uint64(uniform(t, "passes", 2, 4)), p.Seed%2 == 1, 1
		if p.Again { // a phase of one round takes all of them
			p.Cohort = uint64(p.Publishers)
		}
	}
	return p
}

// alone is a task of two organisations that trust nobody, with six blocks each for four rounds.
var alone = plan{Rounds: 4, Cohort: 2, Minimum: 2, Publishers: 2, Rows: 6, Units: 2, Local: true,
	Pace: 500 * time.Millisecond, Bundle: 1, Seed: 7}

// TestCampaignsOfSilos: as TestCampaigns, of organisations whose reports are about blocks of rows; most of them
// trust nobody.
func TestCampaignsOfSilos(t *testing.T) {
	var all sum
	checks(t, 40, func(rt *rapid.T) {
		p, ops := drawSilos(rt), drawOps(rt, verbs)
		r := play(t, p, ops, broken{})
		all.add(p, ops, r)
		if len(r.violations) > 0 {
			rt.Fatalf("%s\nlost %v, said %v, %s", strings.Join(r.violations, "\n"), r.gone, r.said, describe(p, ops))
		}
	})
	t.Log(&all)
	if all.campaigns >= 40 && (all.interactive == 0 || all.again == 0 || all.calm == 0) {
		t.Errorf("these campaigns did not meet what they are for: %v", &all)
	}
}

// TestBrokenSilosAreSeen: an organisation that forgets what it drew sends its blocks again, and is seen; the same
// with its store is without a fault.
func TestBrokenSilosAreSeen(t *testing.T) {
	passes := alone
	passes.Rounds, passes.Together, passes.Again, passes.Rows = 0, 3, true, 1
	for seen, p := range map[string]plan{"block 0 is drawn 2 times": alone, "its device's ledger says": passes} {
		if r := play(t, p, again, broken{}); len(r.violations) > 0 || !r.ended {
			t.Errorf("with its store: ended %v, %q", r.ended, r.violations)
		}
		if all := strings.Join(play(t, p, again, broken{forgets: true}).violations, "\n"); !strings.Contains(all, seen) {
			t.Errorf("%q is not among the violations:\n%s", seen, all)
		}
	}
}

// again is an organisation that is killed as its first report was sent, and comes back.
var again = []op{{1500 * time.Millisecond, "crash", 3, 0}, {0, "start", 3, 0}, {time.Second, "pass", 0, 0}}
