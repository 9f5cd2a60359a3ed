package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// tolerance bounds how many points behind the best line a recommended one may be predicted, so that it is really at
// most Bar behind: the difference allows for the spread of the seeds. Where the seeds leave more open, the reason
// states it.
const (
	tolerance = 0.3
	bar       = 0.5
)

const confidence = 0.95

// upper returns the mean of paired differences, its standard error, and an upper confidence limit of it:
// Student's t, one-sided. shared is rows that are scored on over rows learned from where the seeds share
// data, else 0: their runs are no independent samples then (Nadeau and Bengio 2003).
func upper(differences []float64, shared float64) (mean, sd, top float64) {
	k := float64(len(differences))
	mean, s := stat.MeanStdDev(differences, nil)
	sd = s * math.Sqrt(1/k+shared)
	return mean, sd, mean + distuv.StudentsT{Mu: 0, Sigma: 1, Nu: k - 1}.Quantile(confidence)*sd
}

// recommend judges the lines and marks one. Lines that keep the task's unit, which is its promise, and are surely
// better than the best constant are eligible, if the best line is. Of those that are at most Tolerance behind the
// best it takes the least trust, then the fewest rounds, then the fewest bytes, then the better one. It returns the
// reason in a sentence, also where nothing is eligible.
func recommend(lines []Line, shared float64) string {
	best := -1
	for i := range lines {
		l := &lines[i]
		short, _, worst := upper(negative(l.above), shared)
		l.Vacuous, l.Unsure = short >= 0, short < 0 && worst >= 0
		if !l.Vacuous && l.Keeps && l.alone() && (best < 0 || stat.Mean(l.points, nil) > stat.Mean(lines[best].points, nil)) {
			best = i
		}
	}
	if best < 0 {
		return "nothing is recommended: no line that keeps the task's unit is predicted better than the best constant; more units, a larger epsilon or fewer columns are needed"
	}
	tops, chosen := make([]float64, len(lines)), best
	for i := range lines {
		l := &lines[i]
		gaps := slices.Clone(lines[best].points)
		for k := range gaps {
			gaps[k] -= l.points[k]
		}
		l.Behind, l.BehindError, tops[i] = upper(gaps, shared)
		if l.Keeps && l.alone() && !l.Vacuous && !l.Unsure && l.Behind <= tolerance && prefer(*l, lines[chosen]) {
			chosen = i
		}
	}
	if lines[best].Unsure {
		return fmt.Sprintf(
			"nothing is recommended: %s is predicted best, and not surely better than the best constant: more --seeds would tell better, more units learn more", lines[best].name())
	}
	lines[chosen].Recommended = true
	return reason(lines, best, chosen, tops)
}

// alone reports whether one organisation can run a task as the line says. Two operators have to be found first: the line
// is there for those who have, and is never recommended.
func (l Line) alone() bool { return l.Trust != accounting.Split.String() }

// prefer reports whether the first of two lines that are good enough is preferred to the second.
func prefer(a, b Line) bool {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Rounds, b.Rounds), cmp.Compare(a.Bytes, b.Bytes),
		cmp.Compare(stat.Mean(b.points, nil), stat.Mean(a.points, nil))) < 0
}

// reason explains the choice: what was given up and for what, and what still less trust would cost.
func reason(lines []Line, best, chosen int, tops []float64) string {
	at := lines[chosen]
	text := at.name() + ": "
	switch first := lines[best]; {
	case chosen == best:
		text += "predicted best of the lines that protect what the task promises"
	default:
		text += fmt.Sprintf("%.1f points are given up against %s, for ", max(0, at.Behind), first.name())
		switch {
		case at.rank < first.rank:
			text += "less trust"
		case at.Rounds < first.Rounds:
			text += fmt.Sprintf("%d rounds instead of %d", at.Rounds, first.Rounds)
		default:
			text += "shorter reports"
		}
	}
	if tops[chosen] > bar {
		text += fmt.Sprintf("; by 95 %% at most %.1f: more --seeds would tell better", tops[chosen])
	}
	less := -1
	for i, l := range lines {
		if l.Keeps && l.alone() && l.rank < at.rank && (less < 0 || l.Behind < lines[less].Behind) {
			less = i
		}
	}
	if less >= 0 && lines[less].Vacuous {
		text += fmt.Sprintf("; with still less trust, %s, it learns nothing", lines[less].name())
	} else if less >= 0 {
		text += fmt.Sprintf("; still less trust, %s, would cost %.1f", lines[less].name(), lines[less].Behind)
	}
	if at.rank == len(trusts)-1 && slices.ContainsFunc(lines, func(l Line) bool { return l.alone() && l.rank < at.rank }) {
		text += "; it needs one holder of all rows"
	}
	return text
}

// name returns the line in a few words.
func (l Line) name() string {
	if l.Passes == "many" {
		return fmt.Sprintf("%s, many passes, %s", l.noise, l.Algorithm)
	}
	return fmt.Sprintf("%s, one pass, %s", l.noise, l.Algorithm)
}

func negative(x []float64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = -x[i]
	}
	return out
}
