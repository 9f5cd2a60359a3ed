package task

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
)

// TestOneHotGroup: a one-hot group is one indicator of several fields, with norm 1, and can be crossed.
func TestOneHotGroup(t *testing.T) {
	m := mustCompile(t, mustParse(t, regression, "intercept=0", `features={columns: [{column: soil, kind: onehot-group, columns: [a, b, c], missing: {tokens: ["?"]}},
		{column: job, kind: categorical, vocabulary: [x, y]}], crosses: [{columns: [soil, job]}]}`))
	if got, want := m.Names()[:6], []string{"soil=a", "soil=b", "soil=c", "job=x", "job=y",
		"soil=a&job=x"}; !slices.Equal(got, want) {
		t.Errorf("names %q", got)
	}
	if got, want := m.Schema().Columns, []string{"a", "b", "c", "job"}; !slices.Equal(got, want) {
		t.Errorf("fields %q", got)
	}
	if got := m.Bound() * m.Bound(); got < 3-1e-12 || got > 3+1e-12 {
		t.Errorf("bound squared %v, want 1 each for group, word and cross", got)
	}
	for _, c := range []struct {
		fields string
		want   []int32
	}{
		{"1 0 0 x", []int32{0, 3, 5}},
		{"0 0 1 y", []int32{2, 4, 10}},
		{"0.2 0.5 -3 y", []int32{1, 4, 8}},
		{"0 0 0 x", []int32{3}},
		{"? 0 nan y", []int32{4}},
		{"? 1 0 y", []int32{1, 4, 8}},
	} {
		e := mapped(t, m, Row{Fields: strings.Fields(c.fields), Label: "1"})
		if !slices.Equal(e.Index, c.want) {
			t.Errorf("%s: %v, want %v", c.fields, e.Index, c.want)
		}
	}
	for fields, reason := range map[string]string{"1 1 0 x": "several", "1 0 z x": "in column c",
		"1 0 inf x": "in column c"} {
		err := m.Map(Row{Fields: strings.Fields(fields), Label: "1"}, new(convex.Example))
		var bad *RowError
		if !errors.As(err, &bad) || bad.Column != "soil" || !strings.Contains(bad.Reason, reason) {
			t.Errorf("%s: %v, want column soil, and %q", fields, err, reason)
		}
	}
}
