package inspection

import (
	"iter"
	"math"
)

// clearly is the number of standard deviations from which on the order of the rows counts as no accident: in rows of
// random order that happens once in two million times.
const clearly = 5

// leastOrdered is the least number of labels whose order is judged.
const leastOrdered = 20

// An order holds sums over a series of labels for a test of random order. Two classes are treated as the numbers -1 and
// +1; several classes are counted.
type order struct {
	n                           float64
	sum, squares, product, next float64 // of y, y^2, position y, y and the y before it
	first, last                 float64
	counts, positions           []float64 // of several classes: how many, and the sum of their positions
	matches                     float64   // rows of the class of the row before
}

// Ordered tests whether labels, as the loss sees them, are clearly not in random order, by their correlation with their
// position and with the label before. classes is the number of classes; 0 for numbers.
func Ordered(labels iter.Seq[float64], classes int) (position, neighbour float64, clear bool) {
	o := newOrder(classes)
	for y := range labels {
		o.add(y)
	}
	position, neighbour, deviations := o.correlations()
	return position, neighbour, deviations > clearly
}

// newOrder returns an order for labels of that many classes; below three they are numbers.
func newOrder(classes int) *order {
	if classes < 3 {
		return &order{}
	}
	return &order{counts: make([]float64, classes), positions: make([]float64, classes)}
}

func (o *order) add(y float64) {
	switch {
	case o.n == 0:
		o.first = y
	case o.counts != nil && y == o.last:
		o.matches++
	}
	o.sum += y
	o.squares += y * y
	o.product += o.n * y
	if o.n > 0 {
		o.next += o.last * y
	}
	if o.counts != nil {
		o.counts[int(y)]++
		o.positions[int(y)] += o.n
	}
	o.last = y
	o.n++
}

// correlations returns the correlations of the label with the position of its row, and with the label before
// it, and the number of standard deviations by which the farther of both is away from random order. With
// several classes the first is the correlation ratio, the share of the spread of positions that the classes
// explain, as a root; the second compares how often neighbours are equal.
func (o *order) correlations() (position, neighbour, deviations float64) {
	if o.n < leastOrdered {
		return 0, 0, 0
	}
	if o.counts != nil {
		return o.classes()
	}
	mean := o.sum / o.n
	spread := o.squares - o.n*mean*mean
	if spread <= 1e-12*o.squares || spread == 0 {
		return 0, 0, 0
	}
	positions := o.n * (o.n*o.n - 1) / 12
	position = (o.product - o.sum*(o.n-1)/2) / math.Sqrt(spread*positions)
	neighbour = (o.next - mean*(2*o.sum-o.first-o.last) + (o.n-1)*mean*mean) / spread
	return position, neighbour, max(math.Abs(position), math.Abs(neighbour)) * math.Sqrt(o.n)
}

// classes compares with a random order of the same labels. Then n times the square of the correlation ratio has the
// chi-square distribution of one degree less than there are classes, which the cube root of Wilson and Hilferty makes
// normal; and the number of equal neighbours has mean n s2 and variance n (s2 - 2 s3 + s2^2), s2 and s3 being the sums
// of squares and cubes of the shares of the classes.
func (o *order) classes() (position, neighbour, deviations float64) {
	var between, s2, s3, present float64
	middle := (o.n - 1) / 2
	for k, count := range o.counts {
		if count == 0 {
			continue
		}
		present++
		away := o.positions[k]/count - middle
		between += count * away * away
		share := count / o.n
		s2 += share * share
		s3 += share * share * share
	}
	if present < 2 {
		return 0, 0, 0
	}
	ratio := between / (o.n * (o.n*o.n - 1) / 12)
	free := present - 1
	spread := 2 / (9 * free)
	deviations = (math.Cbrt(o.n*ratio/free) - (1 - spread)) / math.Sqrt(spread)
	equal := o.matches / (o.n - 1)
	runs := (equal - s2) * math.Sqrt(o.n/(s2-2*s3+s2*s2))
	return math.Sqrt(ratio), (equal - s2) / (1 - s2), max(deviations, math.Abs(runs))
}
