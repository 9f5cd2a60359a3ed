package main

import (
	"strings"
	"testing"

	"github.com/panlearn/panlearn/stream/client"
)

// TestSummary: an event of an interactive task answers many rounds, of which the summary knows the last: it says so.
func TestSummary(t *testing.T) {
	for want, s := range map[string]client.Summary{
		"1 event: 1 counted, 0 uncounted, 0 unknown, 0 refused (1 invalid row sent as zero); their last reports were of 1 round\n": {
			Events: 1, Counted: 1, Invalid: 1, Rounds: 1},
		"300 events: 298 counted, 1 uncounted, 1 unknown, 0 refused (0 invalid rows sent as zero); their last reports were of 12 rounds\n": {
			Events: 300, Counted: 298, Uncounted: 1, Unknown: 1, Rounds: 12},
		"9 events: 5 counted, 4 uncounted, 0 unknown, 0 refused (0 invalid rows sent as zero); their last reports were of 1 round\n" +
			"never sent: 3 events, for which no round was left\n": {Events: 9, Counted: 5, Uncounted: 4, Unused: 3, Rounds: 1},
	} {
		var out strings.Builder
		if err := printSummary(&out, s); err != nil || out.String() != want {
			t.Errorf("%q, %v, want %q", out.String(), err, want)
		}
	}
}
