package main

import (
	"fmt"
	"strings"
	"testing"
)

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
