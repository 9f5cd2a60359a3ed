package compare

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// made returns a line of a trust whose points vary around those given as all others' do.
func made(trust string, rounds uint64, points float64, change ...func(*Line)) Line {
	l := Line{Trust: trust, noise: trust, Passes: "one", Algorithm: "practical", Rounds: rounds,
		Sent: Sent{Bytes: 100}, Keeps: true,
		rank: slices.Index(trusts, trust)}
	for _, e := range []float64{-0.02, 0.01, 0, 0.01} {
		l.points = append(l.points, points+e)
		l.above = append(l.above, points+e-60)
	}
	for _, f := range change {
		f(&l)
	}
	return l
}

func TestRecommend(t *testing.T) {
	noisy := func(l *Line) { // as good in the mean
		for i, e := range []float64{-2, 1, 2, -1} {
			l.points[i] += e
		}
	}
	another := func(l *Line) { l.Keeps = false }
	useless := func(l *Line) {
		for i := range l.above {
			l.above[i] = 0.1 * float64(i%2*2-1)
		}
	}
	unsure := func(l *Line) { // better by half a point, which the runs do not tell
		for i := range l.above {
			l.above[i] = 0.5 + float64(i%2*2-1)
		}
	}
	short := func(l *Line) { l.Bytes = 10 }
	for name, c := range map[string]struct {
		lines []Line
		want  int // -1: nothing
		says  string
	}{
		"the best, where others are far": {[]Line{made("local", 5, 70), made("shuffle", 5, 80)}, 1,
			"would cost 10.0"},
		"less trust, where it is close": {[]Line{made("local", 50, 79.75), made("shuffle", 5, 80)}, 0,
			"0.2 points are given up against shuffle, one pass, practical, for less trust"},
		"not beyond the tolerance": {[]Line{made("local", 5, 79.6), made("shuffle", 5, 80)}, 1,
			"would cost 0.4"},
		"what the seeds leave open is told": {[]Line{made("local", 5, 80, noisy), made("shuffle", 5, 80.1)}, 0,
			"more --seeds would tell better"},
		"a tie of trust: fewest rounds": {[]Line{made("shuffle", 13, 80.2), made("shuffle", 9, 80)}, 1,
			"9 rounds instead of 13"},
		"a tie of rounds: shortest reports": {[]Line{made("shuffle", 9, 80.2), made("shuffle", 9, 80, short)}, 1,
			"shorter reports"},
		"a tie of all: the better": {[]Line{made("shuffle", 9, 80), made("shuffle", 9, 80.2)}, 1,
			"predicted best"},
		"the promise of the unit": {[]Line{made("local", 5, 99, another), made("shuffle", 5, 80)}, 1,
			"predicted best"},
		"nothing that is vacuous, however close": {[]Line{made("local", 5, 80, useless), made("shuffle", 5, 80)}, 1, ""},
		"nothing that is unsure, however close": {[]Line{made("local", 5, 80, unsure), made("shuffle", 5, 80.1)}, 1,
			"would cost 0.1"},
		"nothing, where the best is unsure": {[]Line{made("local", 5, 79), made("shuffle", 5, 80, unsure)}, -1,
			"shuffle, one pass, practical is predicted best, and not surely"},
		"less trust that is useless": {[]Line{made("local", 5, 60, useless), made("shuffle", 5, 80)}, 1,
			"with still less trust, local, one pass, practical, it learns nothing"},
		"nothing at all": {[]Line{made("local", 5, 80, useless), made("shuffle", 5, 99, another)}, -1,
			"nothing is recommended"},
		"one place, if it alone is good": {[]Line{made("shuffle", 5, 70), made(place, 5, 80)}, 1,
			"would cost 10.0; it needs one holder of all rows"},
		"no line that needs a second organisation": {[]Line{made("split", 5, 99), made("shuffle", 5, 80)}, 1, "predicted best"},
		"nor as what less trust would cost": {[]Line{made("local", 5, 70), made("split", 5, 99), made("shuffle", 5, 80)}, 2,
			"still less trust, local, one pass, practical, would cost 10.0"},
		"nor as the one that one place is better than": {[]Line{made("split", 5, 99), made(place, 5, 80)}, 1,
			"predicted best of the lines that protect what the task promises"},
		"one place gives way": {[]Line{made("shuffle", 13, 79.8), made(place, 5, 80)}, 0,
			"for less trust"},
	} {
		reason := recommend(c.lines, 0)
		if strings.Contains(reason, "split") || strings.Contains(name, "nor as the one") && strings.Contains(reason, "one holder") {
			t.Errorf("%s: because %q, which recommends a second organisation", name, reason)
		}
		got := slices.IndexFunc(c.lines, func(l Line) bool { return l.Recommended })
		if got != c.want || !strings.Contains(reason, c.says) {
			t.Errorf("%s: line %d because %q, want %d and %q", name, got, reason, c.want, c.says)
		}
		if n := len(slices.DeleteFunc(c.lines, func(l Line) bool { return !l.Recommended })); n > 1 {
			t.Errorf("%s: %d lines are recommended", name, n)
		}
	}
}

// Seeds that share data tell less.
func TestSharedDataTellLess(t *testing.T) {
	lines := []Line{made("local", 5, 79.8), made("shuffle", 5, 80, func(l *Line) { l.points[0] += 0.2 })}
	alone := recommend(slices.Clone(lines), 0)
	together := recommend(slices.Clone(lines), 1e3)
	if strings.Contains(alone, "more --seeds") || !strings.Contains(together, "more --seeds") {
		t.Errorf("%q, %q", alone, together)
	}
}

func TestLevel(t *testing.T) {
	for _, c := range []struct {
		costs     []float64
		sum, want float64
	}{{[]float64{1, 2, 3}, 6, math.Inf(1)}, {[]float64{1, 9, 9}, 11, 5}, {[]float64{9, 9, 9}, 9, 3}, {[]float64{9, 1, 3},
		7, 3}, {nil, 1, math.Inf(1)}} {
		if got := level(c.costs, c.sum); got != c.want {
			t.Errorf("level(%v, %v) = %v, want %v", c.costs, c.sum, got, c.want)
		}
	}
}
