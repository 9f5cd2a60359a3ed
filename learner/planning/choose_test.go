package planning_test

import (
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/schedule"
)

// TestAutoMeasures checks that auto follows the measurement, on tasks whose bounds point the other way: a9a and
// the digits take no psgd though its bound is the smallest. An interactive task takes an interactive method, or
// the reason tells why not, and it names the plans that cannot be simulated.
func TestAutoMeasures(t *testing.T) {
	softmax, err := convex.Declaration{Name: "softmax", Classes: 10}.New()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*planning.Problem)
		want   []string
		words  string
	}{
		"a9a": {func(*planning.Problem) {}, []string{schedule.PAGD, schedule.PAGDEnvelope}, "with simulated rows"},
		"interactive": {func(p *planning.Problem) { p.Interactive, p.Set.Radius, p.MaxRounds = true, 60, 300 },
			[]string{schedule.PGD, schedule.PGDEnvelope}, "psgd "},
		"interactive, cohort set": {func(p *planning.Problem) { p.Interactive, p.Cohort = true, 500 },
			[]string{schedule.PAGD, schedule.PAGDEnvelope}, "although the task is interactive"},
		"digits": {func(p *planning.Problem) {
			p.Users, p.Dim, p.Set.Radius = 60000, 7850, 60
			*p = p.ForLoss(softmax, 2.5, 0, 9)
		}, []string{schedule.PAGD, schedule.PAGDEnvelope}, "psgd "},
		"a billion users": {func(p *planning.Problem) { p.Users, p.Dim = 1e9, 10 }, []string{schedule.PAGD,
			schedule.PAGDEnvelope},
			"psgd, whose 35714285 rounds are too many, was not simulated"},
		"a loss that is unknown": {func(p *planning.Problem) {
			*p = planning.Problem{Users: p.Users, Dim: p.Dim, ClipNorm: 1, Set: p.Set, Epsilon: 1, Delta: 1e-6,
				HonestFraction: p.HonestFraction,
				LossFacts:      planning.LossFacts{Smoothness: 1, Lipschitz: 1}}
		}, []string{schedule.PAGD}, "nothing could be simulated"},
	} {
		p := a9a()
		c.change(&p)
		p.Algorithm = schedule.Auto
		began := time.Now()
		got := plan(t, p)
		t.Logf("%s, %v: %s", name, time.Since(began).Round(time.Millisecond), got.Why)
		if !strings.Contains(" "+strings.Join(c.want, " ")+" ", " "+got.Plan.Algorithm+" ") ||
			!strings.Contains(got.Why, c.words) {
			t.Errorf("%s: took %s, want one of %v: %s", name, got.Plan.Algorithm, c.want, got.Why)
		}
	}
}
