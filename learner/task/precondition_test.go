package task

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/convex"
)

const estimating = `
version: 1
name: demo
events: {format: libsvm}
features:
  vector: {dimension: 4, min: -2, max: 1, max_nonzeros: 3}
  precondition: {users: 100, damping: 0.25}
norm_bound: 3
label: {positive: ["1"], negative: ["0"]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000}
`

func TestEstimatedMomentsAreDeclared(t *testing.T) {
	s := mustParse(t, estimating)
	// Three values of magnitude 2: squares of norm sqrt(3 16). The intercept is not among them.
	if want := (convex.Preconditioner{Dim: 4, Norm: math.Sqrt(48), Damping: 0.25, Bound: 3}); *s.Preconditioner() != want {
		t.Errorf("%+v, want %+v", *s.Preconditioner(), want)
	}
	own := mustParse(t, estimating, "features.precondition.norm=1.5", "norm_bound=0").Preconditioner()
	if own.Norm != 1.5 || math.Abs(own.Bound-math.Sqrt(1+3*16)) > 1e-12 { // scales of at most 2
		t.Errorf("norm %v, bound %v", own.Norm, own.Bound)
	}
	if got := mustParse(t, scaled).Preconditioner(); got != nil {
		t.Errorf("public scales: %+v", got)
	}
	again, err := s.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(again), "second_moments") {
		t.Errorf("canonical form %s", again)
	}
	if _, err := ParseCanonical(again); err != nil {
		t.Error(err)
	}
	m := mustCompile(t, s)
	if x := mapped(t, m, Row{Index: []int32{0, 1, 2}, Value: []float64{-2, -2, -2}, Label: "1"}); !slices.Equal(x.Value, []float64{-2, -2, -2, 1}) || m.Bound() != 3 {
		t.Errorf("an event before the scales: %v, bound %v", x.Value, m.Bound())
	}
}

func TestEstimatedMomentsRefused(t *testing.T) {
	for _, c := range []struct{ set, path string }{
		{"features.precondition.users=-1", "features.precondition.users"},
		{"features.precondition.users=1000", "features.precondition.users"},
		{"features.precondition.users=0", "features.precondition.second_moments"},
		{"features.precondition.damping=0", "features.precondition.damping"},
		{"features.precondition.norm=-1", "features.precondition.norm"},
		{"features.precondition.norm=7", "features.precondition.norm"},
		{"features.precondition.second_moments=[1, 1, 1, 1]", "features.precondition.second_moments"},
		{"features.precondition={second_moments: [1, 1, 1, 1], damping: 1, norm: 1}", "features.precondition.norm"},
		{"features.scales=[1, 1, 1, 1]", "features.precondition"},
		{"features.vector.min=-1e7", "features.precondition.users"},
		{"schedule.minimum_cohort=101", "features.precondition.users"},
		{"schedule.cohort=901", "features.precondition.users"},
		{"schedule.rounds.max=1", "schedule.rounds.max"},
		{"norm_bound=8", "norm_bound"},
	} {
		_, err := Parse([]byte(estimating), []string{c.set})
		if refused := (*FieldError)(nil); !errors.As(err, &refused) || refused.Path != c.path {
			t.Errorf("%s: %v, want a refusal of %s", c.set, err, c.path)
		}
	}
}

// The declaration with the scales in it maps a row to what a device makes of it with the scales of a round.
func TestScaledDeclarationIsTheDevices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		must := func(m *FeatureMap, row Row) (e convex.Example) {
			if err := m.Map(row, &e); err != nil {
				t.Fatal(err)
			}
			return e
		}
		s := drawSpec(t)
		s.Features.Scales, s.Features.Precondition, s.NormBound = nil, &Precondition{Users: 1, Damping: 0.01}, 0
		if s.Features.momentBound() > maxScale || s.Validate() != nil {
			t.Skip("bounds too wide for moments, or too few users")
		}
		s.NormBound = s.declaredBound() * rapid.Float64Range(0.001, 1).Draw(t, "norm bound")
		p := s.Preconditioner()
		scales := rapid.SliceOfN(rapid.Float64Range(0.01, 10), p.Dim, p.Dim).Draw(t, "scales")
		if rapid.IntRange(0, 3).Draw(t, "before") == 0 {
			scales = nil
		}
		raw := mustCompile(t, s)
		resolved, err := s.Scaled(scales)
		if err != nil {
			t.Fatal(err)
		}
		if scales == nil {
			scales = slices.Repeat([]float64{1}, p.Dim)
		}
		m := mustCompile(t, resolved)
		row := drawRow(t, s, true)
		want := must(m, row)
		var got convex.Example
		p.Rescale(&got, must(raw, row), scales)
		if !slices.Equal(got.Index, want.Index) || got.Label != want.Label || len(got.Value) != len(want.Value) {
			t.Fatalf("%v %v, want %v %v", got.Index, got.Value, want.Index, want.Value)
		}
		for k, v := range want.Value {
			if math.Abs(got.Value[k]-v) > 1e-12*math.Abs(v) {
				t.Fatalf("value %d: %v, want %v", k, got.Value[k], v)
			}
		}
		squares := make([]float64, p.Dim) // within the declared bounds nothing is clipped
		if p.Squares(squares, must(raw, row)); convex.Norm(squares) > p.Norm*(1+1e-12) {
			t.Fatalf("squares of norm %v, declared bound %v", convex.Norm(squares), p.Norm)
		}
	})
}
