package task

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

func cardOf(t *testing.T, s *Spec) *convex.Scorecard {
	t.Helper()
	features, err := s.Compile()
	if err != nil {
		t.Fatal(err)
	}
	card, err := s.Scorecard(features)
	if err != nil {
		t.Fatal(err)
	}
	return card
}

// TestValidationIsOnByDefault checks that a file without validation has scores, and that one that switches them
// off has none.
func TestValidationIsOnByDefault(t *testing.T) {
	card := cardOf(t, mustParse(t, plain, "model.clip_norm=2"))
	if card == nil || card.Norm != 0.5 || card.High != 2.1 || card.Low != 0 || !card.Correctness {
		t.Errorf("by default %+v, want a norm of 2/4 and losses up to 3 ln 2, rounded up to 2.1", card)
	}
	if card := cardOf(t, mustParse(t, plain, "validation.off=true")); card != nil {
		t.Errorf("off: %+v", card)
	}
	card = cardOf(t, mustParse(t, plain, "validation.weight=0.5", "validation.loss_bound=4"))
	if card.Norm != 0.5 || card.High != 4 {
		t.Errorf("as declared: %+v", card)
	}
}

// TestCanonicalSaysValidation checks that the canonical form of a declaration tells whether there is
// validation; a declaration without it has no scores.
func TestCanonicalSaysValidation(t *testing.T) {
	now, err := mustParse(t, plain).Canonical()
	if err != nil || !strings.Contains(string(now), `,"validation":{"weight":0.25}`) {
		t.Fatalf("the canonical form does not say that there is validation: %s, %v", now, err)
	}
	s, err := ParseCanonical([]byte(strings.Replace(string(now), `,"validation":{"weight":0.25}`, "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if card := cardOf(t, s); card != nil {
		t.Errorf("scores %+v in a declaration without validation", card)
	}
	off, err := mustParse(t, plain, "validation.off=true").Canonical()
	if err != nil || !strings.Contains(string(off), `"validation":{"off":true}`) {
		t.Errorf("%s, %v", off, err)
	}
}

func TestValidationRefusals(t *testing.T) {
	for path, sets := range map[string][]string{
		"validation.weight":     {"validation.weight=11"},
		"validation.loss_bound": {"validation.loss_bound=-1"},
		"validation.shape":      {"validation.shape=1"},
	} {
		_, err := Parse([]byte(plain), sets)
		var field *FieldError
		if !errors.As(err, &field) || field.Path != path {
			t.Errorf("%v: got %v, want a refusal at %q", sets, err, path)
		}
	}
	for _, sets := range [][]string{{"validation.off=true", "validation.weight=1"}, {"validation.off=true",
		"validation.loss_bound=1"}} {
		if _, err := Parse([]byte(plain), sets); err == nil || !strings.Contains(err.Error(), "validation.off") {
			t.Errorf("%v: %v", sets, err)
		}
	}
}

func TestRoundUp(t *testing.T) {
	for x, want := range map[float64]float64{2.0794: 2.1, 0.5: 0.5, 0.501: 0.51, 99.1: 100, 1234: 1300, 6.93: 7, 1: 1,
		0: 1, 3e-5: 3e-5} {
		if got := roundUp(x); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("roundUp(%v) = %v, want %v", x, got, want)
		}
	}
	// Machines whose logarithms differ in the last bits agree.
	for _, x := range []float64{2.0794415416798357, 0.5, 1.1} {
		for _, near := range []float64{math.Nextafter(x, 0), math.Nextafter(x, 9)} {
			if roundUp(near) != roundUp(x) {
				t.Errorf("roundUp(%v) = %v, but of a neighbour %v", x, roundUp(x), roundUp(near))
			}
		}
	}
}
