package main

import (
	"strconv"
	"strings"
	"testing"
)

// Each method reaches its gap, in the rounds that it says.
func TestDepths(t *testing.T) {
	var text strings.Builder
	names, rounds, err := newDeviations(100, 5).depths([]float64{4, 8}, 2000, &text)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	if len(names) != 4 {
		t.Fatalf("methods %v", names)
	}
	for _, name := range names {
		if xy := rounds[name]; len(xy) != 2 || !(xy[1].Y > xy[0].Y) || xy[0].X != 4 {
			t.Errorf("%s: rounds %v, want more for a smaller gap", name, xy)
		}
	}
	if got := rounds["subgradient descent"][1].Y; got != 64 {
		t.Errorf("subgradient descent: %v rounds, want kappa^2", got)
	}
	for _, line := range strings.Split(strings.TrimSpace(text.String()), "\n")[2:] {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if gap, err := strconv.ParseFloat(cells[len(cells)-1], 64); err != nil || gap > 1 {
			t.Errorf("a gap that is not reached: %s, %v", line, err)
		}
	}
}
