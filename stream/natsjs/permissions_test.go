package natsjs

import "testing"

// TestMatches: patterns of permissions, as the server reads them.
func TestMatches(t *testing.T) {
	for _, test := range []struct {
		pattern, subject string
		want             bool
	}{
		{"a.b", "a.b", true}, {"a.b", "a.c", false}, {"a.b", "a", false}, {"a.b", "a.b.c", false},
		{"a.*", "a.b", true}, {"a.*", "a", false}, {"a.*", "a.b.c", false}, {"*.b", "a.b", true},
		{"a.>", "a.b", true}, {"a.>", "a.b.c", true}, {"a.>", "a", false}, {">", "a", true},
		{"$JS.API.DIRECT.GET.*.panlearn.*.round.*", "$JS.API.DIRECT.GET.S.panlearn.t.round.7", true},
		{"$JS.API.DIRECT.GET.*.panlearn.*.round.*", "$JS.API.DIRECT.GET.S.panlearn.t.lease", false},
	} {
		if got := matches([]string{"x.y", test.pattern}, test.subject); got != test.want {
			t.Errorf("%s takes %s: %t", test.pattern, test.subject, got)
		}
	}
}
