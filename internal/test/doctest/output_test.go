package doctest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var (
	moment = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[\d:.]+Z?\b`)
	hash   = regexp.MustCompile(`\b[0-9a-f]{16,}\b`)
	number = regexp.MustCompile(`[-+]?\b\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?\b`)
	blanks = regexp.MustCompile(`[ \t]+`)
)

// form is a line without what varies from run to run: times, numbers and hashes become #, blanks one blank.
func form(line string) string {
	for _, varies := range []*regexp.Regexp{moment, number, hash} {
		line = varies.ReplaceAllString(line, "#")
	}
	return strings.TrimSpace(blanks.ReplaceAllString(line, " "))
}

// differs compares what a page shows with what was printed; "" is no difference. A line of three dots in the page stands for any lines, none too.
func differs(shown, printed string, exact bool) string {
	same := func(a, b string) bool {
		if exact {
			return a == b
		}
		return form(a) == form(b)
	}
	want := strings.Split(strings.TrimRight(shown, "\n"), "\n")
	got := strings.Split(strings.TrimRight(printed, "\n"), "\n")
	at, dots := 0, false
	for i, line := range want {
		if line == "..." {
			dots = true
			continue
		}
		for dots && at < len(got) && !same(line, got[at]) {
			at++
		}
		if at == len(got) {
			return fmt.Sprintf("line %d of the page, %q, was not printed", i+1, line)
		}
		if !same(line, got[at]) {
			return fmt.Sprintf("line %d of the page is %q, printed was %q", i+1, line, got[at])
		}
		at, dots = at+1, false
	}
	if at < len(got) && !dots {
		return fmt.Sprintf("more was printed than the page shows: %q", got[at])
	}
	return ""
}

func TestDiffers(t *testing.T) {
	for _, c := range []struct {
		shown, printed string
		exact, same    bool
	}{
		{"round  4 of 44  75.3 %", "round 12 of 44  5.31 %\n", false, true},
		{"round  4 of 44  75.3 %", "round 12 of 44  75.3 %", true, false},
		{"delta 1e-06, hash 00ff00ff00ff00ff00", "delta 2.5e-7, hash abababababababababab", false, true},
		{"loss -0.25", "loss 1,234", false, true},
		{"1,-0.25,0.5,-1", "1,0.75,0.125,1", false, true},
		{"0.25", "0.1234567890123456", false, true},
		{"at 2026-11-22T07:24:15Z", "at 2027-01-02T13:04:05.5Z", false, true},
		{"a\n...\nz", "a\nb\nc\nz", false, true},
		{"a\n...\nz", "a\nz", false, true},
		{"a\n...", "a\nb\nc", false, true},
		{"a\n...\nz", "a\nb", false, false},
		{"a 1", "b 1", false, false},
		{"a 1", "a x", false, false},
		{"a", "a\nb", false, false},
		{"a\nb", "a", false, false},
	} {
		if d := differs(c.shown, c.printed, c.exact); (d == "") != c.same {
			t.Errorf("%q and %q: %q", c.shown, c.printed, d)
		}
	}
}
