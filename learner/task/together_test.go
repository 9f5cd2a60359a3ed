package task

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// together returns a task file as LoadTogether reads it.
func together(t *testing.T, units int, file string, sets ...string) (Together, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "task.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadTogether(path, sets, units)
}

// TestTogether: a file of many devices declares one silo of all units, and so does a file without a silo. Keys
// that are left out are named, and no others.
func TestTogether(t *testing.T) {
	got, err := together(t, 700, plain, "privacy.honest_fraction=0.5", "schedule.cohort=10", "privacy.trust=pan",
		"events.key=id", "schedule.deadline=9s")
	if err != nil {
		t.Fatal(err)
	}
	if s := got.Spec; *s.Silo != (Silo{Count: 1, Units: 700, Reports: 1, Least: 700}) || s.Privacy.Trust != accounting.Local ||
		s.Privacy.HonestFraction.Fraction != accounting.One || s.Schedule.Users != 700 ||
		s.Schedule.Cohort != 0 || s.Schedule.MinimumCohort != 1 || s.Schedule.Deadline.String() != "9s" ||
		s.Events.Key != "" {
		t.Errorf("declared %+v, %+v, %+v", s.Silo, s.Privacy, s.Schedule)
	}
	for _, key := range []string{"privacy.honest_fraction", "schedule.cohort", "privacy.trust", "events.key",
		"schedule.users"} {
		if !slices.Contains(got.LeftOut, key) {
			t.Errorf("%q is left out and not named: %q", key, got.LeftOut)
		}
	}
	split, err := together(t, 700, plain, "privacy.trust=split", "privacy.operators.leader="+strings.Repeat("a", 64),
		"privacy.operators.helper="+strings.Repeat("b", 64))
	if err != nil {
		t.Fatalf("a task of two operators: %v", err)
	}
	if split.Spec.Privacy.Trust != accounting.Local || !slices.Contains(split.LeftOut, "privacy.operators") {
		t.Errorf("two operators: declared %+v, left out %q", split.Spec.Privacy, split.LeftOut)
	}
	bare := strings.Replace(plain, "users: 1000, ", "", 1)
	none, err := together(t, 0, bare)
	if err != nil {
		t.Fatal(err)
	}
	if none.Silo.Units != unsized || len(none.LeftOut) != 0 {
		t.Errorf("nobody has counted: %+v, left out %q", none.Silo, none.LeftOut)
	}
	for _, c := range []struct {
		sets        []string
		interactive bool
		scores      bool
	}{
		{nil, true, false},
		{[]string{"schedule.algorithm=" + schedule.PGD}, true, false},
		{[]string{"schedule.algorithm=" + schedule.PSGD}, false, false},
		{[]string{"schedule.plan=practical", "schedule.interactive=false"}, false, false},
		{[]string{"validation.weight=0.5"}, true, true},
	} {
		got, err := together(t, 700, bare, c.sets...)
		if err != nil {
			t.Fatal(err)
		}
		if got.Schedule.Interactive != c.interactive || got.Validation.Off == c.scores {
			t.Errorf("%q: interactive %t, scores %t", c.sets, got.Schedule.Interactive, !got.Validation.Off)
		}
	}
}

// TestTogetherRefuses what is of several places, or has no end.
func TestTogetherRefuses(t *testing.T) {
	for set, path := range map[string]string{"silo.count=1": "silo", "schedule.continuous=adaptive": "schedule.continuous",
		"privacy.epsilon=0": "privacy.epsilon", "nothing=1": "nothing"} {
		var field *FieldError
		if _, err := together(t, 700, plain, set); !errors.As(err, &field) || field.Path != path {
			t.Errorf("%s: %v", set, err)
		}
	}
	if _, err := together(t, 700, plain, "schedule.algorithm=outptu"); err == nil ||
		!strings.Contains(err.Error(), schedule.PGD) || !strings.Contains(err.Error(), "output-phases") {
		t.Errorf("a method that is none: %v, want the names of those that there are", err)
	}
	for _, units := range []int{-1, maxUsers + 1} {
		if _, err := together(t, units, plain); err == nil {
			t.Errorf("%d units are accepted", units)
		}
	}
}
