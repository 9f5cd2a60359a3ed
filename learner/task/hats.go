package task

import (
	"fmt"
	"slices"
	"strconv"
)

// Fewest and most knots of a column of kind hats.
const (
	minKnots = 2
	maxKnots = 64
)

func (c *Column) validateKnots(path string) error {
	if len(c.Knots) < minKnots || len(c.Knots) > maxKnots {
		return refuse(path+".knots", fmt.Sprintf("%d numbers", len(c.Knots)), "from %d to %d numbers", minKnots, maxKnots)
	}
	for i := range c.Knots[1:] {
		if c.Knots[i+1] <= c.Knots[i] {
			return refuse(fmt.Sprintf("%s.knots.%d", path, i+1), c.Knots[i+1], "a number > the one before (%v)", c.Knots[i])
		}
	}
	return nil
}

// place returns x, moved between the outer knots, in units of knots: i + (x - t_i)/(t_(i+1) - t_i) for x between knots
// i and i+1, counted from 0. Hat j is then max(0, 1 - |place - j|).
func (s *Source) place(x float64) float64 {
	last := len(s.Knots) - 1
	x = min(max(x, s.Knots[0]), s.Knots[last])
	i, _ := slices.BinarySearch(s.Knots, x) // the first knot that is at least x
	i = max(i-1, 0)
	return float64(i) + (x-s.Knots[i])/(s.Knots[i+1]-s.Knots[i])
}

// setHats appends the two hats around a place, of a source whose coordinates begin at first. It appends both even if
// one of them is 0.
func (w *writer) setHats(s *Source, first int, place float64) {
	i := min(int(place), len(s.Knots)-2)
	upper := place - float64(i)
	w.set(first+i, 1-upper)
	w.set(first+i+1, upper)
}

// hatRoom is the margin for rounding of a group of hats in the sum of squares, in units of the whole sum: two squares
// are added where the bound has one, and each addition may be rounded up. A text has the same margin for each of its
// words.
const hatRoom = 0x1p-51

// hatName names the coordinate of a knot.
func hatName(s *Source, at int) string {
	return quoteName(s.Column) + "@" + strconv.FormatFloat(s.Knots[at], 'g', -1, 64)
}
