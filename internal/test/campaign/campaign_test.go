package campaign

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/shuffle/stage"
)

// A sum says what a series of campaigns went through, so that nobody believes in one that met nothing.
type sum struct {
	campaigns, ended, waiting, ops      int
	real, void, reopened                int
	interactive, passed, again          int
	counted, uncounted, unknown, unseen int
	examined                            map[stage.Reason]int
	sprung                              map[string]int
	took                                time.Duration
}

func (s *sum) add(p plan, ops []op, r result) {
	s.campaigns++
	s.ops += len(ops)
	if r.ended {
		s.ended++
	} else {
		s.waiting++
	}
	s.real, s.void, s.reopened = s.real+r.real, s.void+r.void, s.reopened+r.reopened
	s.passed, s.again = s.passed+r.passed, s.again+r.again
	if p.Together > 0 {
		s.interactive++
	}
	s.counted, s.uncounted = s.counted+r.counted, s.uncounted+r.uncounted
	s.unknown, s.unseen, s.took = s.unknown+r.unknown, s.unseen+r.unseen, s.took+r.took
	if s.examined == nil {
		s.examined, s.sprung = map[stage.Reason]int{}, map[string]int{}
	}
	for trap, n := range r.sprung {
		s.sprung[trap] += n
	}
	for reason, n := range r.examined {
		s.examined[reason] += n
	}
}

func (s *sum) String() string {
	return fmt.Sprintf("%d campaigns of %d operations in %v: %d ended, %d wait for users; %d real and %d void batches, %d attempts "+
		"opened again; %d tasks with an interactive phase, %d void rounds in them, %d users counted several times; %d events counted (%d of them by the rule of doubt, in no batch), %d uncounted, %d unknown; reports: %v; a process %v",
		s.campaigns, s.ops, s.took.Round(time.Hour), s.ended, s.waiting, s.real, s.void, s.reopened, s.interactive, s.passed, s.again, s.counted, s.unseen,
		s.uncounted, s.unknown, s.examined, s.sprung)
}

// TestCalm: without operations every task ends, unless it has too few users; nobody is in doubt and nothing is done
// twice.
func TestCalm(t *testing.T) {
	checks(t, 40, func(rt *rapid.T) {
		p := drawPlan(rt)
		p.Lossy = false
		r := play(t, p, nil, broken{})
		if len(r.violations) > 0 {
			rt.Fatalf("%q\n%s", r.violations, describe(p, nil))
		}
		// In random order a report may lie below the cutoff and not have been opened.
		if r.unknown > 0 || (r.unseen > 0 && !p.Reorder) || r.void > 0 || r.reopened > 0 {
			rt.Errorf("without a fault: %+v\n%s", r, describe(p, nil))
		}
	})
}

// TestCampaigns: whatever is done to the system, what must hold holds.
func TestCampaigns(t *testing.T) {
	n := 250
	if longtest.Run(t, "all but the first 250 of 3000 campaigns") {
		n = 3000
	}
	var all sum
	checks(t, n, func(rt *rapid.T) {
		p, ops := drawPlan(rt), drawOps(rt)
		r := play(t, p, ops, broken{})
		all.add(p, ops, r)
		if len(r.violations) > 0 {
			rt.Fatalf("%q\n%s", r.violations, describe(p, ops))
		}
	})
	t.Log(&all)
	if all.campaigns >= 250 && (all.interactive == 0 || all.passed == 0 || all.again == 0) {
		t.Errorf("no interactive phase met what it is for: %v", &all)
	}
	// Of 250 campaigns about 20 have a void batch and more than that any of the others: none at all is no accident.
	if all.campaigns >= 250 && (all.void == 0 || all.reopened == 0 || all.waiting == 0 || all.unknown == 0 || all.uncounted == 0) {
		t.Errorf("these campaigns did not meet what they are for: %v", &all)
	}
	// Each kind of call is met about 10 times or more.
	for _, call := range slices.Concat(learnerTraps[:1], stageTraps, []string{"publish"}) {
		met := 0
		for trap, n := range all.sprung {
			if strings.HasSuffix(trap, " "+call) {
				met += n
			}
		}
		if all.campaigns >= 250 && met == 0 {
			t.Errorf("no trap was met at %s: %v", call, all.sprung)
		}
	}
}

// checks runs a property n times: without PANLEARN_DEEP always the same campaigns, with it new ones each time. The flags
// of rapid win.
func checks(t *testing.T, n int, property func(*rapid.T)) {
	t.Helper()
	asked := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { asked[f.Name] = true })
	set := func(name, value string) {
		if f := flag.Lookup(name); !asked[name] {
			old := f.Value.String()
			must(f.Value.Set(value))
			t.Cleanup(func() { must(f.Value.Set(old)) })
		}
	}
	set("rapid.checks", strconv.Itoa(n))
	set("rapid.nofailfile", "true") // a failure prints its schedule
	if !longtest.On() {
		set("rapid.seed", "1")
	}
	rapid.Check(t, property)
}
