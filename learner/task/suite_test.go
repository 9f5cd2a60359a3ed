package task

import (
	"bytes"
	"errors"
	"testing"
)

const suiteTask = "version: 1\nname: churn\nevents: {format: libsvm}\n" +
	"features: {vector: {dimension: 2, min: 0, max: 1}}\nlabel: {positive: [\"1\"], negative: [\"-1\"]}\nmodel: {loss: logistic, radius: 1}\n" +
	"privacy: {epsilon: 1, delta: 1e-6}\nschedule: {users: 1000}\n"

// TestSuiteHasOneSpelling: the words and the numbers of a suite are one declaration, and a task that says nothing has
// the bytes, and so the hash, that it had before there was a choice.
func TestSuiteHasOneSpelling(t *testing.T) {
	canonical := func(sets ...string) []byte {
		s, err := Parse([]byte(suiteTask), sets)
		if err != nil {
			t.Fatal(err)
		}
		data, err := s.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseCanonical(data); err != nil {
			t.Error(err)
		}
		return data
	}
	plain := canonical()
	if bytes.Contains(plain, []byte("suite")) {
		t.Errorf("a task that says nothing declares a suite: %s", plain)
	}
	for _, same := range []string{"2", "x25519"} {
		if !bytes.Equal(canonical("privacy.suite="+same), plain) {
			t.Errorf("suite %s is another declaration than none", same)
		}
	}
	hybrid := canonical("privacy.suite=3")
	if !bytes.Equal(hybrid, canonical("privacy.suite=mlkem768x25519")) || bytes.Equal(hybrid, plain) {
		t.Errorf("suite 3: %s", hybrid)
	}
	for _, sets := range [][]string{{"privacy.suite=1"}, {"privacy.suite=mlkem1024"},
		{"privacy.suite=3", "privacy.seal=none"}} {
		var refused *FieldError
		if _, err := Parse([]byte(suiteTask), sets); !errors.As(err, &refused) || refused.Path != "privacy.suite" {
			t.Errorf("%v: %v, want a refusal of privacy.suite", sets, err)
		}
	}
}
