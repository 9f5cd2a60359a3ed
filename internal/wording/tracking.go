package wording

import (
	"fmt"
	"time"

	"github.com/panlearn/panlearn/learner/method"
)

// NextRound describes the next round: how many users it takes, and when it closes with fewer.
func NextRound(t method.Tracking) string {
	text := fmt.Sprintf("the next round asks %d", t.Cohort)
	if t.DeadlineMs > 0 {
		text += fmt.Sprintf(", and closes with fewer after %v",
			(time.Duration(t.DeadlineMs) * time.Millisecond).Round(time.Second))
	}
	return text
}

// Tracking describes how a model follows its stream, of users, or of the units of silos.
func Tracking(t method.Tracking, k Kind) string {
	counted := k.Counted()
	if k.Silos > 0 {
		counted = k.Unit()
	}
	text := fmt.Sprintf("remembers about %.3g %s, expects an excess loss of about %.2g for that; ", t.Memory, counted.Many,
		t.Error)
	if t.Cohort > 0 {
		text += NextRound(t) + "; "
	}
	if t.Alarm {
		return text + fmt.Sprintf("it has changed: the last round surprises by %.1f deviations, and %v is the alarm",
			t.Surprise, method.Alarm)
	}
	return text + fmt.Sprintf("the last round surprises by %.1f deviations (%v is the alarm)", t.Surprise, method.Alarm)
}
