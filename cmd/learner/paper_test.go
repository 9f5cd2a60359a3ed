package main

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestSmoothLossesHaveTheirTheorem: what the method does with a smooth loss does not change what the theorems ask for, and
// a loss that is not smooth has no Theorem 3.1.
func TestSmoothLossesHaveTheirTheorem(t *testing.T) {
	sets := []string{"privacy={epsilon: 1, delta: 1e-6, trust: local, profile: paper}", "silo={count: 20, units: 2500}"}
	smooth := map[string]float64{}
	for _, method := range []string{"pagd", "pagd-envelope"} {
		p := surveyed(t, append(sets, "schedule={algorithm: "+method+"}")...).report.Prescribed
		if p == nil || p.Prescription == nil || p.Theorem != "3.1" {
			t.Fatalf("%s: %+v", method, p)
		}
		smooth[method] = p.Smoothness
	}
	if smooth["pagd"] != smooth["pagd-envelope"] {
		t.Errorf("smoothness %v", smooth)
	}
	p := surveyed(t, append(sets, "schedule={algorithm: pagd-envelope}", "model.loss=hinge")...).report.Prescribed
	if p.Prescription != nil || !strings.Contains(p.Reason, "asks for a smooth loss") {
		t.Errorf("hinge: %+v", p)
	}
}

// TestSilosThatStayAway: the plan of silos says what its bound is if fewer reports come, and whether that says anything.
func TestSilosThatStayAway(t *testing.T) {
	r := surveyed(t, "privacy={epsilon: 8, delta: 1e-6, trust: local}", "silo={count: 20, units: 50000, spread: 0.01}",
		"schedule={algorithm: psgd}").report
	var text strings.Builder
	if err := r.print(&text); err != nil {
		t.Fatal(err)
	}
	if r.AtMinimum == nil || !(*r.AtMinimum > *r.PredictedExcessRisk) || r.Minimum != 10 ||
		!strings.Contains(text.String(), "that is if every report comes; with 10 in every round") {
		t.Fatalf("at least %d: %v\n%s", r.Minimum, r.AtMinimum, text.String())
	}
	for _, bound := range []float64{*r.AtMinimum, *r.TrivialRisk, *r.TrivialRisk * 0.99} {
		r.AtMinimum = &bound
		text.Reset()
		if err := r.print(&text); err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(text.String(), "stay away at random, at most ")
		line, _, _ = strings.Cut(line, "\n")
		if strings.HasSuffix(line, ", says nothing") != (bound >= *r.TrivialRisk) {
			t.Errorf("bound %v, the start has %v: %s", bound, *r.TrivialRisk, line)
		}
	}
	for line := range strings.Lines(text.String()) { // of the tables
		for _, a := range r.Alternatives {
			if a.Applies && strings.HasPrefix(strings.TrimPrefix(line, "* "), a.Algorithm+" ") &&
				strings.Contains(line, "says nothing") != a.Vacuous {
				t.Errorf("%s is vacuous %v: %s", a.Algorithm, a.Vacuous, line)
			}
		}
	}
	if f := r.FewerReports; f != nil && (f.Reports >= 20 || !(f.PredictedExcessRisk < *r.PredictedExcessRisk) ||
		!strings.Contains(text.String(), "advice        with silo.reports=")) {
		t.Errorf("%+v:\n%s", f, text.String())
	}
	r = surveyed(t, "schedule={users: 20000, algorithm: psgd, minimum_cohort: 1}").report
	if r.AtMinimum == nil || r.FewerReports != nil {
		t.Errorf("users: %v, %v", r.AtMinimum, r.FewerReports)
	}
}

// TestTurnouts: the plan of silos says what its bound is where silos come by chance, between those of all and of the
// fewest, and what other numbers of silos in a round have, with silo.spread and without.
func TestTurnouts(t *testing.T) {
	const silos = "../../deploy/tasks/silos.yaml"
	sets := []string{"--set", "schedule.plan=proved", "--set", "model.radius=20", "--set", "model.clip_norm=1", "--set", "silo.spread=0.05",
		"--set", "features.vector.dimension=14"}
	plan := func(args ...string) (r struct {
		planRisk
		planTurnouts
	}, text string, err error) {
		var out bytes.Buffer
		c := newPlan()
		c.SetOut(&out)
		c.SetErr(io.Discard)
		c.SetArgs(append(append([]string{"-f", silos}, sets...), args...))
		c.SilenceUsage, c.SilenceErrors = true, true
		if err = c.Execute(); err == nil && slices.Contains(args, "--json") {
			err = json.Unmarshal(out.Bytes(), &r)
		}
		return r, out.String(), err
	}
	r, _, err := plan("--json", "--present", "0.8", "--by-reports")
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Present; p == nil || !(p.PredictedExcessRisk > *r.PredictedExcessRisk) || !(p.PredictedExcessRisk < *r.AtMinimum) ||
		!(p.Reports > 15 && p.Reports < 16) {
		t.Errorf("%+v between %v and %v", p, *r.PredictedExcessRisk, *r.AtMinimum)
	}
	for _, b := range r.ByReports {
		if all := b.Reports == 20; all != (*b.PredictedExcessRisk == *b.WithoutSpread) || all && *b.PredictedExcessRisk != *r.PredictedExcessRisk {
			t.Errorf("%d: %v, without a spread %v", b.Reports, *b.PredictedExcessRisk, *b.WithoutSpread)
		}
	}
	if len(r.ByReports) != 5 {
		t.Errorf("%d numbers of silos", len(r.ByReports))
	}
	_, text, err := plan("--present", "0.8", "--by-reports")
	if err != nil || !strings.Contains(text, "with probability 0.8, at most") || !strings.Contains(text, "\n              20    ") {
		t.Errorf("%v:\n%s", err, text)
	}
	passes := []string{"--set", "schedule.interactive=true", "--set", "schedule.algorithm=pgd", "--set", "silo.count=3",
		"--set", "silo.reports=3"}
	r, _, err = plan(append(passes, "--json", "--silo-rows", "1628,1628,3256")...)
	if u := r.Unequal; err != nil || !(u.PredictedExcessRisk < *r.PredictedExcessRisk) || !(u.Least < u.Largest) || !(u.ByRows < u.Mean) ||
		!(u.PaperQ < u.EqualQ) {
		t.Errorf("%+v, %v", r.Unequal, err)
	}
	_, text, err = plan(append(passes, "--silo-rows", "1628,1628,3256")...)
	if err != nil || !strings.Contains(text, "3 silos of 1628 to 3256 rows") || !strings.Contains(text, "has Q") {
		t.Errorf("%v:\n%s", err, text)
	}
	for _, args := range [][]string{{"--silo-rows", "1628"}, append(passes, "--silo-rows", "1,1628,1628"),
		append(passes, "--silo-rows", "1628,1628"), {"--present", "0"}, {"--present", "1.2"}, {"--present", "NaN"},
		{"--present", "0.5", "--compare"}, {"--by-reports", "--set", "privacy.trust=shuffle"},
		{"--present", "0.5", "--set", "schedule.plan=practical"}} {
		if _, _, err := plan(args...); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}
