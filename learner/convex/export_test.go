package convex

// Evaluations returns how often a search evaluates its function for scores of classes, of which y is one.
func Evaluations(scores []float64, y int, least, most float64) (n int) {
	m := newTempered(scores, y, least, most)
	lo, hi, w := m.bracket(len(scores))
	search(lo, hi, w, least, func(w float64) (f, slope, c, sum, end float64) {
		n++
		return m.at(scores, w)
	})
	return n
}
