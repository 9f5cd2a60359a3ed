package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/prequential"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
)

// TestLearnedOfAStream checks that the text about the first cohort of a task without an end has no step and no share
// of clipped gradients, which follow the stream.
func TestLearnedOfAStream(t *testing.T) {
	var b strings.Builder
	l := &practical.Learned{Start: []float64{0}, Stream: &practical.Stream{}, Frame: convex.Frame{Clip: 1.5}}
	if err := printLearned(&b, l.Summary()); err != nil {
		t.Fatal(err)
	}
	for _, untrue := range []string{"steps v", " = 0", "0 %", "fit"} {
		if strings.Contains(b.String(), untrue) {
			t.Errorf("%q says %q", b.String(), untrue)
		}
	}
	if !strings.Contains(b.String(), "clipped to 1.5") {
		t.Errorf("%q does not say the clip", b.String())
	}
}

// TestAlarmsOfRuns: the line over all seeds tells the mean of their alarms.
func TestAlarmsOfRuns(t *testing.T) {
	loss := 0.5
	run := func(alarms ...uint64) simulated {
		return simulated{Prequential: &prequential.Score{Users: 1000, LogLoss: &loss, Accuracy: &loss, Alarms: alarms,
			AlarmCount: float64(len(alarms))}}
	}
	mean := func(x []float64) (sum float64) {
		for _, v := range x {
			sum += v / float64(len(x))
		}
		return sum
	}
	for _, one := range []struct {
		runs []simulated
		want string
	}{
		{[]simulated{run(250, 750)}, ", 2 alarms"},
		{[]simulated{run(250, 750), run(500)}, ", 1.5 alarms"},
		{[]simulated{run(500), run(600)}, ", 1 alarm"},
	} {
		if got := prequential.Fold(scoresOf(one.runs), mean).String(); !strings.HasSuffix(got, one.want) {
			t.Errorf("%q, want %q at its end", got, one.want)
		}
	}
}

// TestNoiseOfAStreamsCohorts: a plan without an end tells the noise of the rounds that it has, and not alone that of
// the users whom its noise is planned for.
func TestNoiseOfAStreamsCohorts(t *testing.T) {
	r := surveyed(t, "schedule.plan=practical", "schedule.algorithm=auto", "schedule.users=4000",
		"schedule.continuous=adaptive").report
	var b strings.Builder
	r.print(&b)
	local := surveyed(t, "schedule.plan=practical", "schedule.algorithm=auto", "schedule.users=40000",
		"schedule.continuous=adaptive", "privacy.trust=local")
	var alone strings.Builder
	if local.report.print(&alone); strings.Contains(alone.String(), "the stage adds") || strings.Contains(alone.String(),
		"as the stream wants") {
		t.Errorf("under trust local no stage adds noise and cohorts do not change, but:\n%s", alone.String())
	}
	least := r.scale * r.Privacy.TotalStd() * float64(r.Cohort) / float64(r.Base)
	if want := fmt.Sprintf("of the mean of %d has about %.3g of the clip norm", r.Base, least); r.Base >= r.Cohort ||
		!strings.Contains(b.String(), want) {
		t.Errorf("want %q in\n%s", want, b.String())
	}
}
