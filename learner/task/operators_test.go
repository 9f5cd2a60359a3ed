package task

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

var (
	oneKey   = strings.Repeat("01", 32)
	otherKey = strings.Repeat("a2", 32)
)

// TestOperatorsAreDeclared: a task of two operators is sealed by suite 3 unless it says otherwise, which is refused; it
// names both by different keys, or none as long as it is planned only; and no other task names any.
func TestOperatorsAreDeclared(t *testing.T) {
	keys := "privacy.operators={leader: \"" + oneKey + "\", helper: " + otherKey + "}"
	for _, sets := range [][]string{{"privacy.trust=split"}, {"privacy.trust=split", "privacy.suite=3"},
		{"privacy.trust=split", keys}, {"privacy.trust=split", "privacy.operators={}"}} {
		s, err := Parse([]byte(suiteTask), sets)
		if err != nil {
			t.Errorf("%v: %v", sets, err)
			continue
		}
		if s.Privacy.Sealing() != suiteHybrid || !s.Privacy.Trust.HasOperators() {
			t.Errorf("%v: sealed by %s, split %t", sets, s.Privacy.Sealing(), s.Privacy.Trust.HasOperators())
		}
		named := len(sets) > 1 && sets[1] == keys
		if named != (s.Privacy.Operators != nil) {
			t.Errorf("%v: operators %+v", sets, s.Privacy.Operators)
		}
		if named {
			leader, helper, ok := s.Privacy.Operators.Keys()
			if !ok || leader[0] != 1 || helper[0] != 0xa2 {
				t.Errorf("keys %x and %x, %t", leader, helper, ok)
			}
		}
		data, err := s.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseCanonical(data)
		if err != nil {
			t.Fatal(err)
		}
		if more, err := again.Canonical(); err != nil || !bytes.Equal(more, data) {
			t.Errorf("%v: %s, %v", sets, more, err)
		}
	}
	for _, c := range []struct {
		path string
		sets []string
	}{
		{"privacy.seal", []string{"privacy.trust=split", "privacy.seal=none"}},
		{"privacy.suite", []string{"privacy.trust=split", "privacy.suite=x25519"}},
		{"privacy.suite", []string{"privacy.trust=split", "privacy.suite=2"}},
		{"privacy.operators", []string{"privacy.trust=pan", keys}},
		{"privacy.operators", []string{keys}},
		{"privacy.operators.leader", []string{"privacy.trust=split", "privacy.operators={helper: " + otherKey + "}"}},
		{"privacy.operators.helper", []string{"privacy.trust=split", "privacy.operators={leader: " + otherKey + "}"}},
		{"privacy.operators.helper",
			[]string{"privacy.trust=split", "privacy.operators={leader: " + otherKey + ", helper: " + strings.ToUpper(otherKey) + "}"}},
		{"privacy.operators.helper",
			[]string{"privacy.trust=split", "privacy.operators={leader: " + otherKey + ", helper: " + otherKey + "}"}},
	} {
		var refused *FieldError
		if _, err := Parse([]byte(suiteTask), c.sets); !errors.As(err, &refused) || refused.Path != c.path {
			t.Errorf("%v: %v, want a refusal of %s", c.sets, err, c.path)
		}
	}
}
