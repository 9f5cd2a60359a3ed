package evaluation

// A Confusion counts events by class, a row for each label and a column for each prediction, both in the order of
// the classes.
type Confusion [][]int

// NewConfusion returns the confusion of k classes before the first event.
func NewConfusion(k int) Confusion {
	out := make(Confusion, k)
	for i := range out {
		out[i] = make([]int, k)
	}
	return out
}

// Precision returns the share of events predicted to be of class k that are: 0 where none was predicted.
func (c Confusion) Precision(k int) float64 {
	predicted := 0
	for _, row := range c {
		predicted += row[k]
	}
	return share(c[k][k], predicted)
}

// Recall returns the share of events of class k that are predicted to be: 0 where there are none.
func (c Confusion) Recall(k int) float64 {
	labels := 0
	for _, n := range c[k] {
		labels += n
	}
	return share(c[k][k], labels)
}

// Macro returns the mean of a figure over the classes, which counts a rare one as much as any.
func (c Confusion) Macro(of func(k int) float64) float64 {
	sum := 0.0
	for k := range c {
		sum += of(k)
	}
	return sum / float64(len(c))
}

func share(n, of int) float64 { return float64(n) / float64(max(1, of)) }
