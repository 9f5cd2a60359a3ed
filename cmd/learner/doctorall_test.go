package main

import (
	"slices"
	"testing"

	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// TestDoctorOfAllBlamesServersOnce: what is wrong with a server is one finding however many tasks there are, and what
// is wrong with a task is one of each, also in the same words.
func TestDoctorOfAllBlamesServersOnce(t *testing.T) {
	found := []natsadmin.Finding{
		{Check: "broker", Status: natsadmin.OK, Text: "it answers"},
		{Check: "certificates", Status: natsadmin.Warning, Text: "b.example: ends tomorrow"},
		{Check: "consumer stage", Status: natsadmin.Failure, Text: "it is not there"},
	}
	var d diagnosis
	if d.add("ads", found) || d.add("churn", found) || !d.add("spam", found[:1]) {
		t.Error("want ads and churn unwell, spam well")
	}
	var checks []string
	for _, f := range d.Findings {
		checks = append(checks, f.Check)
	}
	if want := []string{"certificates", "ads: consumer stage", "churn: consumer stage"}; !slices.Equal(checks, want) {
		t.Errorf("found %q, want %q", checks, want)
	}
}
