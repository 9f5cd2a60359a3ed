package main

import (
	"testing"

	"github.com/panlearn/panlearn/internal/run/runadmin"
	"github.com/panlearn/panlearn/stream/retention"
)

// TestRetained checks the texts of retained. The text for a task of few rounds, which keeps all records, does not
// claim that they are young.
func TestRetained(t *testing.T) {
	for want, all := range map[string]runadmin.Retained{
		"task a keeps all of its records": {Task: "a"},
		"task a: no records removed: no round is older than 168h0m0s and more than 1000 rounds behind the newest, 7": {
			Task: "a", Retention: "168h0m0s",
			Removed: retention.Removed{Newest: 7}},
		"task a: 15 records of rounds below 4 removed, older than 1h0m0s; the newest is round 1100": {Task: "a",
			Retention: "1h0m0s",
			Removed:   retention.Removed{Newest: 1100, Before: 4, Records: 15}},
	} {
		if got := retained(all); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
