package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/wording"
)

// TestFitFields pins the names that scripts of users rely on.
func TestFitFields(t *testing.T) {
	accuracy := 0.5
	for _, c := range []struct {
		of   fitted
		want string
	}{
		{fitted{Outcome: rehearse.Outcome{TestAccuracy: &accuracy}},
			"algorithm baseline delta epsilon rounds rows task test_accuracy train_loss unit"},
		{fitted{published: &published{NoiseStd: 1, Least: 2, Depth: 3, Queries: 4, Largest: 5, Notes: []string{"x"},
			Better: "y"}},
			"algorithm baseline better bound delta depth epsilon halted least noise_std notes on_records phase phases queries round_queries rounds rows source task train_loss unit"},
		{fitted{Outcome: rehearse.Outcome{TestError: &accuracy}, Public: true, People: 3},
			"algorithm baseline delta epsilon people public rounds rows task test_error train_loss unit"},
	} {
		doc, err := json.Marshal(c.of)
		var fields map[string]any
		if err == nil {
			err = json.Unmarshal(doc, &fields)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(fields)), " "); err != nil || got != c.want {
			t.Errorf("a fit's report has the fields %q, %v: want %q", got, err, c.want)
		}
	}
}

// TestPublished: what is printed of a method that needs all rows at once says whether it halted, that there is no
// bound, and what would do better.
func TestPublished(t *testing.T) {
	bound := 0.25
	for _, c := range []struct {
		of   published
		how  string
		want []string
	}{
		{published{Source: "a paper", NoiseStd: 0.5, Least: 7, unit: wording.People, Phase: 1, Phases: 1,
			Notes: []string{"kappa 2"}, Better: "output does"},
			"1 phase", []string{"method        a paper\n", "noise         0.5 on", "smallest n    7 people\n",
				"none on the excess risk", "              kappa 2\n", "better        output does\n"}},
		{published{Halted: true, Phase: 2, Phases: 5, Bound: &bound}, "halted: the model is of phase 2 of 5",
			[]string{"0.25 on the expected excess risk on new rows"}},
		{published{Phase: 1, Phases: 1, Bound: &bound, OnRecords: true, Depth: 10, Queries: 25}, "1 phase",
			[]string{"on these rows", "depth 10, about 25 in all, 2.5 a step"}},
		{published{public: true, Depth: 10, Queries: 30, Largest: 3}, "10 rounds, 30 queries",
			[]string{"depth 10, 30 in all, 3.0 a round, at most 3"}},
	} {
		text := c.of.String()
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%+v prints\n%s without %q", c.of, text, want)
			}
		}
		if got := c.of.how(); got != c.how {
			t.Errorf("%+v: %q, want %q", c.of, got, c.how)
		}
	}
}
