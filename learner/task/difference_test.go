package task

import (
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/deploy"
)

// TestDifferences names each key that differs, with both values, and nothing else.
func TestDifferences(t *testing.T) {
	canonical := func(sets ...string) []byte {
		t.Helper()
		file, err := deploy.Tasks.ReadFile("tasks/quickstart.yaml")
		if err != nil {
			t.Fatal(err)
		}
		spec, err := Parse(file, sets)
		if err != nil {
			t.Fatal(err)
		}
		data, err := spec.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, test := range []struct {
		file, task []byte
		want       []string
	}{
		{canonical(), canonical(), nil},
		{canonical(), canonical("privacy.epsilon=0.5"), []string{"privacy.epsilon: file says 1, task has 0.5"}},
		{canonical("privacy.trust=pan", "name=other"), canonical(), []string{`name: file says "other", task has "quickstart"`,
			`privacy.trust: file says "pan", task has "shuffle"`}},
		{canonical("schedule.cohort=100"), canonical(), []string{"schedule.cohort: file says 100, task has 0"}},
		{[]byte(`{"a":[1,{"b":2}]}`), []byte(`{"a":[1,{"b":3},4]}`), []string{"a[1].b: file says 2, task has 3",
			"a[2]: file says nothing, task has 4"}},
		{[]byte(`{"a":1}`), []byte("\x1b[2J"), []string{`declaration: file says "{\"a\":1}", task has "\x1b[2J"`}},
		{[]byte(`{"a":"x"}`), []byte(`{"a":"\u001b[2J\u202e` + strings.Repeat("y", 100) + `"}`),
			[]string{`a: file says "x", task has "\x1b[2J\u202eyyy`}},
	} {
		var got []string
		for _, d := range Differences(test.file, test.task) {
			got = append(got, d.String())
		}
		if !slices.EqualFunc(got, test.want, func(g, w string) bool {
			return strings.HasPrefix(g, w) &&
				len(g) < len(w)+80
		}) {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
	many := make([]Difference, 9)
	if got := DifferenceText(many); strings.Count(got, ";") != 5 || !strings.HasSuffix(got, "; and 4 more") {
		t.Errorf("%s", got)
	}
}
