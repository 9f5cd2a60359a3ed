package doctest

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	moment = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[\d:.]+Z?\b`)
	hash   = regexp.MustCompile(`\b[0-9a-f]{16,}\b`)
	number = regexp.MustCompile(`[-+]?\b\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?\b`)
	blanks = regexp.MustCompile(`[ \t]+`)
)

// A tolerance is by how much a number that is printed may differ from the one that the page shows, as a share of the
// larger.
type tolerance float64

// anyNumber accepts every number for every other.
var anyNumber = tolerance(math.Inf(1))

// toleranceOf reads the value of the word output: none is exact.
func toleranceOf(word string) (tolerance, error) {
	switch word {
	case "":
		return 0, nil
	case "any":
		return anyNumber, nil
	}
	x, err := strconv.ParseFloat(word, 64)
	if err != nil || !(x > 0 && x < 1) {
		return 0, fmt.Errorf("output=%s: want a share in (0, 1), any, or nothing", word)
	}
	return tolerance(x), nil
}

// varying returns a line without the times and hashes that no two runs share.
func varying(line string) string {
	return hash.ReplaceAllStringFunc(moment.ReplaceAllString(line, "#"), func(h string) string {
		if strings.ContainsAny(h, "abcdef") {
			return "#"
		}
		return h // digits of a number
	})
}

// form returns a line without its numbers too, with blanks as one blank.
func form(line string) string {
	return strings.TrimSpace(blanks.ReplaceAllString(number.ReplaceAllString(varying(line), "#"), " "))
}

// same compares lines.
func (t tolerance) same(a, b string) bool {
	if t == 0 {
		return varying(a) == varying(b)
	}
	if form(a) != form(b) {
		return false
	}
	x, y := number.FindAllString(varying(a), -1), number.FindAllString(varying(b), -1)
	for i := range x {
		if !t.near(x[i], y[i]) {
			return false
		}
	}
	return true
}

func (t tolerance) near(a, b string) bool {
	x, err := strconv.ParseFloat(strings.ReplaceAll(a, ",", ""), 64)
	y, other := strconv.ParseFloat(strings.ReplaceAll(b, ",", ""), 64)
	return err == nil && other == nil && (math.IsInf(float64(t), 1) || math.Abs(x-y) <= float64(t)*max(math.Abs(x),
		math.Abs(y)))
}

// differs compares what a page shows with what was printed; "" is no difference. A line of three dots in the page
// matches any number of lines, also none.
func differs(shown, printed string, about tolerance) string {
	want := strings.Split(strings.TrimRight(shown, "\n"), "\n")
	got := strings.Split(strings.TrimRight(printed, "\n"), "\n")
	at, dots := 0, false
	for i, line := range want {
		if line == "..." {
			dots = true
			continue
		}
		for dots && at < len(got) && !about.same(line, got[at]) {
			at++
		}
		if at == len(got) {
			return fmt.Sprintf("line %d of the page, %q, was not printed", i+1, line)
		}
		if !about.same(line, got[at]) {
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
		about          tolerance
		same           bool
	}{
		{"round  4 of 44  75.3 %", "round 12 of 44  5.31 %\n", anyNumber, true},
		{"round  4 of 44  75.3 %", "round 12 of 44  75.3 %", 0, false},
		{"round  4 of 44  75.3 %", "round  4 of 44  75.3 %", 0, true},
		{"delta 1e-06, hash 00ff00ff00ff00ff00", "delta 2.5e-7, hash abababababababababab", anyNumber, true},
		{"delta 1e-06, hash 00ff00ff00ff00ff00", "delta 1e-06, hash abababababababababab", 0, true},
		{"loss -0.25", "loss 1,234", anyNumber, true},
		{"loss -0.25", "loss 0.25", 0.5, false},
		{"loss 0.250, 1,000 users", "loss 0.26, 990 users", 0.05, true},
		{"loss 0.250, 1,000 users", "loss 0.29, 990 users", 0.05, false},
		{"1,-0.25,0.5,-1", "1,0.75,0.125,1", anyNumber, true},
		{"0.25", "0.1234567890123456", anyNumber, true},
		{"at 2026-11-22T07:24:15Z", "at 2027-01-02T13:04:05.5Z", 0, true},
		{"a\n...\nz", "a\nb\nc\nz", 0, true},
		{"a\n...\nz", "a\nz", 0, true},
		{"a\n...", "a\nb\nc", 0, true},
		{"a\n...\nz", "a\nb", anyNumber, false},
		{"a 1", "b 1", anyNumber, false},
		{"a 1", "a x", anyNumber, false},
		{"a", "a\nb", anyNumber, false},
		{"a\nb", "a", anyNumber, false},
	} {
		if d := differs(c.shown, c.printed, c.about); (d == "") != c.same {
			t.Errorf("%q and %q: %q", c.shown, c.printed, d)
		}
	}
}
