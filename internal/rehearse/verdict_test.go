package rehearse

import (
	"strings"
	"testing"
)

// TestVerdict checks which sentence is printed of which scores.
func TestVerdict(t *testing.T) {
	loss := Measure{Field: "test_log_loss", short: "log loss", Falls: true}
	accuracy := Measure{Field: "test_accuracy", short: "accuracy"}
	start, converged := 0.31, 0.29
	for _, c := range []struct {
		name string
		v    verdict
		m    Measure
		sd   float64
		want string

		offset bool
	}{
		{"learned", verdict{Private: 0.3, Constant: 0.55, Exact: 0.299}, loss, 0,
			"log loss 0.3: better than the best constant (0.55); without noise 0.299", false},
		{"helps the start", verdict{Private: 0.3, Constant: 0.55, Start: &start, Exact: 0.299, Converged: &converged}, loss,
			0.001, "better than the start as it is (0.31); without noise 0.299, without privacy and until it converges 0.29",
			false},
		{"the start did it", verdict{Private: 0.309, Constant: 0.55, Start: &start, Exact: 0.299}, loss, 0.001,
			"no better than the start as it is (0.31); without noise 0.299. Use the start as it is", false},
		{"hurts the start", verdict{Private: 0.32, Constant: 0.55, Start: &start, Exact: 0.299}, loss, 0.001,
			"worse than the start as it is (0.31); without noise 0.299. Use the start as it is", false},
		{"nothing", verdict{Private: 0.75, Constant: 0.75, Exact: 0.76}, accuracy, 0,
			"accuracy 0.75: no better than the best constant (0.75); without noise 0.76. Nothing was learned", false},
		{"a public prediction", verdict{Private: 4.5, Constant: 4.3, Start: &start, Exact: 4}, loss, 0.001,
			"worse than the public prediction and a constant (4.3), worse than the public prediction alone (0.31); without " +
				"noise 4. Use the public prediction alone", true},
		{"better rises", verdict{Private: 0.85, Constant: 0.75, Exact: 0.86}, accuracy, 0.01, "better than the best constant",
			false},
	} {
		if text := c.v.words(c.m, c.sd, c.offset); !strings.Contains(text, c.want) {
			t.Errorf("%s: %q, want %q in it", c.name, text, c.want)
		}
	}
}

// TestSimulateEndsWithAVerdict: the simulation compares with a fit that converged although none was asked
// for, and agrees with the runs.
func TestSimulateEndsWithAVerdict(t *testing.T) {
	s := unevenly(t)
	r, err := s.Run(t.Context(), &strings.Builder{}, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Verdict; v == nil || v.Converged == nil || v.Private != *r.Mean.TestLogLoss ||
		v.Constant != *r.Baseline.TestLogLoss || v.Exact != *r.NonPrivate.TestLogLoss || !(*v.Converged < v.Constant) {
		t.Fatalf("%+v", v)
	}
	if one, err := s.Run(t.Context(), &strings.Builder{}, 1, 1); err != nil || strings.Contains(r.Verdict.Text,
		"chance") ||
		!strings.HasSuffix(one.Verdict.Text, "(one seed: small differences may be chance)") {
		t.Errorf("%v, of one seed %q, of two %q", err, one.Verdict.Text, r.Verdict.Text)
	}
	var out strings.Builder
	if err := r.Print(&out); err != nil || !strings.Contains(out.String(), "\nverdict       "+r.Verdict.Text+"\n") {
		t.Errorf("%v, printed\n%s", err, out.String())
	}
}
