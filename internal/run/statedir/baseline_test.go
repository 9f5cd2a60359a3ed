package statedir

import (
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/runtest"
)

// TestBaselineIsWhatWasReleased: a practical plan knows the majority class, or the mean in the units of the label; a
// proved one knows nothing.
func TestBaselineIsWhatWasReleased(t *testing.T) {
	proved := strings.Replace(runtest.Words, "schedule: {", "schedule: {algorithm: psgd, ", 1)
	for name, file := range map[string]string{"two classes": runtest.Words, "three classes": runtest.Classes,
		"numbers": runtest.Numbers, "proved": proved} {
		_, view := ended(t, runtest.Parsed(t, file))
		status, err := view.Status()
		if err != nil {
			t.Fatal(err)
		}
		if (status.RMSE != nil) != (name == "numbers") {
			t.Errorf("%s: an error %+v", name, status.RMSE)
		}
		b := status.Baseline
		if (b == nil) != (name == "proved") {
			t.Fatalf("%s: %+v", name, b)
		}
		switch name {
		case "two classes", "three classes":
			least := 1 / float64(len(view.Spec.Label.Classes)+len(view.Spec.Label.Positive)+len(view.Spec.Label.Negative))
			if b.Class == "" || b.Accuracy == nil || *b.Accuracy < least || *b.Accuracy > 1 || b.Loss == nil || b.Value != nil {
				t.Errorf("%s: %+v", name, b)
			}
		case "numbers":
			if b.Value == nil || *b.Value < 0 || *b.Value > 1000 || *b.Error <= 0 || *b.Error > 1000 || b.Class != "" {
				t.Errorf("%s: %+v", name, b)
			}
			// the labels are in [0, 1000]: [-1, 1] as the loss sees them
			for _, l := range [][2]float64{{status.Validation.Loss.Recent.Value, status.RMSE.Recent.Value},
				{status.Validation.Loss.Overall.High, status.RMSE.Overall.High},
				{*b.Loss, *b.Error}} {
				if want := 500 * math.Sqrt(2*l[0]); math.Abs(l[1]-want) > 1e-9*want {
					t.Errorf("%s: an error of %g at loss %g, want %g", name, l[1], l[0], want)
				}
			}
		}
	}
}

// TestLogLabelsHaveNoUnit: the loss of a label of scale log says nothing in the units of the data.
func TestLogLabelsHaveNoUnit(t *testing.T) {
	_, view := ended(t, runtest.Parsed(t, strings.Replace(runtest.Numbers, "max: 1000", "max: 1000, scale: log, unit: 10",
		1)))
	status, err := view.Status()
	if err != nil {
		t.Fatal(err)
	}
	if b := status.Baseline; status.RMSE != nil || b == nil || b.Value == nil || *b.Value < 0 || *b.Value > 1000 ||
		b.Error != nil {
		t.Errorf("an error %+v, baseline %+v", status.RMSE, b)
	}
}
