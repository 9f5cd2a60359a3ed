package inspection

import (
	"math"
	"math/rand/v2"
	"testing"
)

// series feeds labels, of that many classes, to an order.
func series(labels []float64, classes int) *order {
	o := newOrder(classes)
	for _, y := range labels {
		o.add(y)
	}
	return o
}

// correlation returns Pearson's correlation, in two passes.
func correlation(x, y []float64) float64 {
	mean := func(v []float64) (m float64) {
		for _, a := range v {
			m += a / float64(len(v))
		}
		return m
	}
	mx, my := mean(x), mean(y)
	var xy, xx, yy float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
	}
	return xy / math.Sqrt(xx*yy)
}

// TestCorrelations: the sums of one pass give what two passes do, on labels that grow, that wave, and of two
// classes.
func TestCorrelations(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, label := range map[string]func(i int) float64{
		"grows": func(i int) float64 { return 5 + float64(i)/100 + r.NormFloat64() },
		"waves": func(i int) float64 { return math.Sin(float64(i) / 30) },
		"turns": func(i int) float64 { return math.Copysign(1, 300-float64(i)) },
	} {
		var labels, positions []float64
		for i := range 1000 {
			labels, positions = append(labels, label(i)), append(positions, float64(i))
		}
		position, neighbour, deviations := series(labels, 0).correlations()
		if want := correlation(positions, labels); math.Abs(position-want) > 1e-9 {
			t.Errorf("%s: correlation with the position %v, want %v", name, position, want)
		}
		// The mean and spread of the whole replace those of its two parts.
		if want := correlation(labels[1:], labels[:999]); math.Abs(neighbour-want) > 0.01 {
			t.Errorf("%s: correlation with the neighbour %v, want %v", name, neighbour, want)
		}
		if !(deviations > clearly) {
			t.Errorf("%s: %v deviations", name, deviations)
		}
	}
}

// TestOrderOfClasses: labels in random order have deviations like those of a standard normal, of which the
// larger of two, in magnitude, is above 3 once in 185 times; labels that are sorted or in blocks, or only waves
// within the classes, are detected.
func TestOrderOfClasses(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	shares := map[int][]float64{2: {0.97, 1}, 3: {0.5, 0.8, 1}, 7: {0.3, 0.6, 0.8, 0.9, 0.95, 0.99, 1}}
	for classes, upTo := range shares {
		var labels []float64
		draw := func() float64 {
			u := r.Float64()
			for k, s := range upTo {
				if u < s {
					if classes == 2 {
						return float64(2*k - 1)
					}
					return float64(k)
				}
			}
			panic("shares")
		}
		const runs = 400
		above := 0
		for range runs {
			labels = labels[:0]
			for range 2000 {
				labels = append(labels, draw())
			}
			if _, _, deviations := series(labels, classes).correlations(); deviations > 3 {
				above++
			}
		}
		// 400/185 = 2.2 are expected; a Poisson variable of mean 2.2 is above 15 with probability below 1e-8. Rare classes
		// have heavier tails.
		if above > 15 {
			t.Errorf("%d classes: %d of %d random orders are 3 deviations away", classes, above, runs)
		}
		sorted := append([]float64(nil), labels...)
		for i := range sorted { // blocks of 50 of one label, in random order otherwise
			sorted[i] = labels[i/50*50]
		}
		if classes > 2 {
			if _, neighbour, deviations := series(sorted, classes).correlations(); deviations < clearly || neighbour < 0.9 {
				t.Errorf("%d classes in blocks: %v, %v deviations", classes, neighbour, deviations)
			}
		}
	}
	var ranked []float64
	for i := range 900 {
		ranked = append(ranked, float64(i/300))
	}
	// The positions of three equal blocks: 8/9 of their spread is between blocks.
	if position, _, deviations := series(ranked, 3).correlations(); math.Abs(position*position-8.0/9) > 1e-5 ||
		deviations < clearly {
		t.Errorf("three sorted classes: %v, %v deviations", position, deviations)
	}
}

// TestOrderOfLittle: no label, one, one value, and so few that nothing is judged: every number is finite.
func TestOrderOfLittle(t *testing.T) {
	for _, labels := range [][]float64{nil, {1}, {1, 1}, {0, 1, 2}, make([]float64, 100)} {
		for _, classes := range []int{0, 2, 3} {
			position, neighbour, deviations := series(labels, classes).correlations()
			if position != 0 || neighbour != 0 || deviations != 0 {
				t.Errorf("%v of %d classes: %v, %v, %v", labels, classes, position, neighbour, deviations)
			}
		}
	}
}
