package dashboard

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Tick is a mark of an axis, with its place in the drawing.
type Tick struct {
	At    float64
	Label string
}

// An axis maps values to the drawing. Values beyond its ends are drawn at the ends.
type axis struct{ from, to, start, end float64 }

func (a axis) at(v float64) float64 {
	if a.to == a.from {
		return round1((a.start + a.end) / 2)
	}
	v = max(a.from, min(a.to, v))
	return round1(a.start + (v-a.from)/(a.to-a.from)*(a.end-a.start))
}

// spread returns the least range that holds all values; ok is false if there is none.
func spread(values ...[]float64) (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, list := range values {
		for _, v := range list {
			if finite(v) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return low, high, low <= high
}

// outlying is the largest multiple of the 90 % quantile that may still set the end of an axis.
const outlying = 4

// most returns the end of an axis that few values must not stretch: the largest value that is at most outlying times
// the 90 % quantile. It uses a quantile of the values, and not a logarithm, because the other values then keep the
// scale that people read; what is cut is marked.
func most(values []float64) float64 {
	sorted := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !finite(v) })
	slices.Sort(sorted)
	if len(sorted) == 0 {
		return 0
	}
	limit := outlying * sorted[int(0.9*float64(len(sorted)-1))]
	last := sorted[0]
	for _, v := range sorted {
		if v <= limit {
			last = v
		}
	}
	return last
}

// median returns the median of the finite values; 0 if there are none.
func median(values []float64) float64 {
	sorted := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !finite(v) })
	if len(sorted) == 0 {
		return 0
	}
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// ticks returns about n round values that span low to high.
func ticks(low, high float64, n int) (values []float64, step float64) {
	if high <= low {
		high = low + max(math.Abs(low), 1)*1e-3
	}
	raw := (high - low) / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step = 10 * power
	for _, m := range []float64{1, 2, 5} {
		if m*power >= raw {
			step = m * power
			break
		}
	}
	first, last := math.Floor(low/step), math.Ceil(high/step)
	for i := first; i <= last && len(values) < 64; i++ {
		values = append(values, i*step)
	}
	return values, step
}

// tickLabel formats a tick with as many digits as its step needs.
func tickLabel(v, step float64) string {
	if a := math.Abs(v); a >= 1e6 || a > 0 && step < 1e-4 {
		return fmt.Sprintf("%.2g", v)
	}
	digits := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	return strings.Replace(fmt.Sprintf("%.*f", digits, v+0), "-", "−", 1)
}

func percentTick(v, step float64) string { return tickLabel(100*v, 100*step) + " %" }

func round1(v float64) float64 { return math.Round(10*v) / 10 }
