package consent

import (
	"testing"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// TestAssuming checks that a refusal names the parties on whose noise its epsilon rests: silos for a silo, and
// nobody under trust local.
func TestAssuming(t *testing.T) {
	half, err := accounting.ParseFraction("1/2")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		trust accounting.Trust
		silo  *task.Silo
		want  string
	}{
		{accounting.Shuffle, nil, ", if in every cohort a share 0.5 of the users planned for is honest"},
		{accounting.Shuffle, &task.Silo{Count: 4}, ", if in every cohort a share 0.5 of the silos planned for is honest"},
		{accounting.Local, &task.Silo{Count: 4}, ""},
	} {
		if got := assuming(&task.Spec{Privacy: task.Privacy{Trust: c.trust}, Silo: c.silo}, half); got != c.want {
			t.Errorf("%v: %q, want %q", c.trust, got, c.want)
		}
	}
}
