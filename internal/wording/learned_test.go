package wording

import (
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
)

// TestLearnedOfAStream checks that the text about the first cohort of a task without an end has no step and no share
// of clipped gradients, which follow the stream.
func TestLearnedOfAStream(t *testing.T) {
	var b strings.Builder
	l := &practical.Learned{Start: []float64{0}, Stream: &practical.Stream{}, Frame: convex.Frame{Clip: 1.5}}
	if err := PrintLearned(&b, l.Summary()); err != nil {
		t.Fatal(err)
	}
	for _, untrue := range []string{"steps v", " = 0", "0 %", "fit"} {
		if strings.Contains(b.String(), untrue) {
			t.Errorf("%q says %q", b.String(), untrue)
		}
	}
	if !strings.Contains(b.String(), "clipped to 1.5") {
		t.Errorf("%q does not say the clip", b.String())
	}
}
