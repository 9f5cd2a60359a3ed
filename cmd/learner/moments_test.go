package main

import (
	"strings"
	"testing"
)

// TestPlanShowsMoments checks that a practical plan states who reports moments, and their matrix, with what noise; it
// has no bound, and nothing is compared by one.
func TestPlanShowsMoments(t *testing.T) {
	numbers := []string{"label={min: -1, max: 1}", "model.loss=squared"}
	for name, c := range map[string]struct {
		sets  []string
		looks []phase
		lines []string
	}{
		"classes": {nil, []phase{{Users: 500, Dim: 3 + 3 + 1}}, []string{"moments       in round 1, of 500 users: d = 7, "}},
		"numbers": {numbers, []phase{{Users: 500, Dim: 3 + 3 + 2}, {Users: 2000, Dim: 10 + 4 + 1}},
			[]string{"moments       in round 1, of 500 users: d = 8, ", "matrix        in round 2, of 2000 users: d = 15, "}},
		"interactive": {[]string{"schedule.interactive=true"}, []phase{{Users: 500, Dim: 7}},
			[]string{"a user answers up to 12 rounds"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := surveyed(t, append(c.sets, "schedule.plan=practical")...).report
			if len(r.Moments) != len(c.looks) || r.PredictedExcessRisk != nil || r.TrivialRisk != nil ||
				len(r.Alternatives) != 0 || len(r.Guarantees) != 5 {
				t.Fatalf("%+v", r)
			}
			for i, m := range r.Moments {
				if !m.Moments || m.Users != c.looks[i].Users || m.Dim != c.looks[i].Dim || m.Rounds == nil || *m.Rounds != 1 ||
					m.RoundsPerUser != 1 || !(m.NoiseStd > 0) {
					t.Errorf("look %d: %+v, want %+v", i+1, m, c.looks[i])
				}
			}
			var text strings.Builder
			if err := r.print(&text); err != nil {
				t.Fatal(err)
			}
			for _, want := range append(c.lines, "no bound: a practical plan") {
				if !strings.Contains(text.String(), want) {
					t.Errorf("no %q in:\n%s", want, text.String())
				}
			}
		})
	}
	if plain := surveyed(t).report; plain.Moments != nil {
		t.Errorf("no moments: %+v", plain.Moments)
	}
}
