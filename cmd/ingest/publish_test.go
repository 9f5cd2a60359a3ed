package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/filestore"
)

// TestSummary names each kind of outcome where there is one, and no other: the numbers add up to the events.
func TestSummary(t *testing.T) {
	for _, test := range []struct {
		sum  device.Summary
		of   device.Standing
		kept bool
		want []string // in this order; all lines
		err  error
	}{
		{device.Summary{Events: 1, Units: 1, Counted: 1, Rounds: 1}, device.Standing{}, true,
			[]string{"1 event: 1 counted; their last reports were of 1 round"}, nil},
		{device.Summary{Events: 4, Units: 16, LeftOver: 3, Counted: 4, Rounds: 4}, device.Standing{Silo: true}, true,
			[]string{"4 blocks of 16 rows in all: 4 counted; their last reports were of 4 rounds",
				"3 rows are in no report: .* a later run takes them"}, nil},
		{device.Summary{Events: 1, Units: 16, LeftOver: 3, Counted: 1, Rounds: 1}, device.Standing{Silo: true, Whole: true},
			true,
			[]string{"1 block of 16 rows in all: 1 counted", "3 rows are in no report: there are more than when"}, nil},
		{device.Summary{Events: 4, Units: 16, LeftOver: 3, Keyless: 2, Counted: 4, Rounds: 4}, device.Standing{Silo: true,
			People: true}, true,
			[]string{"4 blocks of 16 people in all: 4 counted; ", "3 rows are in no report: they are of people who",
				"2 more rows do not say .* user.column"}, nil},
		{device.Summary{Events: 4, Units: 4, Surplus: 5, Counted: 4, Rounds: 1}, device.Standing{People: true}, true,
			[]string{"4 people: 4 counted; ", "5 more rows are beyond .* user.items"}, nil},
		{device.Summary{}, device.Standing{}, true, []string{"0 events: 0 counted"}, nil},
		{device.Summary{Events: 300, Units: 300, Counted: 298, Unknown: 2, Rounds: 12}, device.Standing{}, true,
			[]string{"300 events: 298 counted", "2 in doubt: "}, nil},
		{device.Summary{Events: 30, Units: 30, Unknown: 30, Open: 30, Rounds: 1}, device.Standing{}, true,
			[]string{"30 events: 0 counted", "30 sent, .* the same command learns"}, nil},
		{device.Summary{Events: 30, Units: 30, Unknown: 30, Open: 30, Rounds: 1}, device.Standing{}, false,
			[]string{"30 events: 0 counted", "30 sent, .* without --state nobody learns"}, nil},
		{device.Summary{Events: 20, Units: 20, Counted: 1, Uncounted: 9, Unused: 5, NotAgain: 3, Unknown: 4, Open: 2,
			Refused: 6, Invalid: 7, Keyless: 8, Rounds: 2}, device.Standing{}, true, []string{
			"20 events: 1 counted", "2 sent, ", "2 in doubt", "3 sent, not counted, .* max_epsilon", "1 sent and not counted",
			"5 never sent", "6 refused", "7 of them do not fit", "8 more rows have no key"}, nil},
		{device.Summary{Events: 9, Units: 9, Counted: 4, Unknown: 5, Rounds: 1}, device.Standing{}, true,
			[]string{"9 events: 4 counted", "5 in doubt until the next run: .* those alone that did not"},
			fmt.Errorf("charge: %w", filestore.ErrRestart)},
	} {
		var out strings.Builder
		err := printSummary(&out, test.sum, test.of, test.kept, test.err)
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if err != nil || len(lines) != len(test.want) {
			t.Errorf("%+v: %v\n%s", test.sum, err, out.String())
			continue
		}
		for i, want := range test.want {
			head, tail, _ := strings.Cut(want, ".* ")
			if !strings.HasPrefix(strings.TrimSpace(lines[i]), head) || !strings.Contains(lines[i], tail) {
				t.Errorf("line %q, want %q", lines[i], want)
			}
		}
	}
}
