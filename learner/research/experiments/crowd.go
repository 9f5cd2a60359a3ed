package main

import (
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/curator"
)

// A population is a pool of rows of a regression: x of norm 1, and y = <truth, x> + e with e of +-noise. A
// person who is drawn from it has a stretch of the pool, on a circle, from a place of their own on: rows of
// people are shared, so that no number of people needs more memory than the pool, and the risk is that on the
// pool itself.
type population struct {
	rows []convex.Example // most more than there are, of which the last are the first again
	size int
	// sums of the products of (x, y) over the rows before every stride-th, packed by rows of the upper triangle
	sums [][]float64
}

const (
	poolRows   = 1 << 22
	roundRows  = 1 << 18
	stride     = 16 // people's stretches begin and end at multiples of it
	truthNorm  = 0.5
	labelNoise = 0.1
	// a row's gradient is at most (R + largest label) long in the ball of radius R: 1.6
	peopleLipschitz = 2
	rowsInSummary   = peopleDim + 1
)

// newPopulation draws a pool, of which stretches of up to most rows are wanted.
func newPopulation(seed uint64, size, most int) *population {
	draw := rand.New(sim.Entropy(seed, "people: pool"))
	p := &population{rows: make([]convex.Example, size, size+most), size: size, sums: make([][]float64, 1, size/stride+1)}
	values := make([]float64, size*peopleDim)
	z, sum := make([]float64, peopleDim+1), make([]float64, packed(peopleDim+1))
	p.sums[0] = make([]float64, len(sum))
	for i := range p.rows {
		x, score := values[i*peopleDim:(i+1)*peopleDim], 0.0
		direction(x, draw)
		for _, v := range x {
			score += truthNorm * v / math.Sqrt(peopleDim)
		}
		y := score + labelNoise
		if draw.Uint64()&1 == 0 {
			y -= 2 * labelNoise
		}
		p.rows[i] = convex.Example{Value: x, Label: y}
		copy(z, x)
		z[peopleDim] = y
		at := 0
		for j := range z {
			for k := j; k < len(z); k++ {
				sum[at] += z[j] * z[k]
				at++
			}
		}
		if i%stride == stride-1 {
			p.sums = append(p.sums, append([]float64(nil), sum...))
		}
	}
	p.rows = append(p.rows, p.rows[:min(most, size)]...)
	return p
}

func packed(n int) int { return n * (n + 1) / 2 }

// places draws where the stretches of so many people begin.
func (p *population) places(draw *rand.Rand, people int) []int {
	out := make([]int, people)
	for i := range out {
		out[i] = stride * draw.IntN(p.size/stride)
	}
	return out
}

// between sets dst to the mean over a stretch, from sums over the rows up to every stride-th one.
func (p *population) between(dst []float64, sums [][]float64, from, m int) {
	last := len(sums) - 1
	a, b := from/stride, (from+m)/stride
	for j := range dst {
		turns := float64(b / last)
		dst[j] = (sums[b%last][j] + turns*sums[last][j] - sums[a][j]) / float64(m)
	}
}

// raw returns people with their own rows, without copying them.
func (p *population) raw(places []int, m int) []curator.Person {
	out := make([]curator.Person, len(places))
	for i, from := range places {
		out[i] = p.rows[from : from+m : from+m]
	}
	return out
}

// summaries returns one person for each place, with rowsInSummary rows, whose mean loss equals that of the m
// rows there at every model: the rows have the sums of squares of a root of the mean of (x, y)(x, y)', turned
// so that every x has norm 1, as the rows have.
func (p *population) summaries(places []int, m int) []curator.Person {
	out := make([]curator.Person, len(places))
	mean := make([]float64, packed(peopleDim+1))
	for i, from := range places {
		p.between(mean, p.sums, from, m)
		out[i] = summary(mean)
	}
	return out
}

// summary returns rows, as many as (x, y) is long, with the given mean of products, all with x of the same
// norm.
func summary(mean []float64) curator.Person {
	const n = peopleDim + 1
	var root [n][n]float64 // by rows: root' root = n mean
	at := 0
	for j := range n { // Cholesky's, of what may have no full rank
		for k := j; k < n; k++ {
			v := mean[at] * n
			at++
			for l := range j {
				v -= root[l][j] * root[l][k]
			}
			switch {
			case k == j:
				root[j][j] = math.Sqrt(max(v, 0))
			case root[j][j] > 1e-7:
				root[j][k] = v / root[j][j]
			}
		}
	}
	square := func(r *[n]float64) (s float64) {
		for _, v := range r[:peopleDim] {
			s += v * v
		}
		return s
	}
	want := 0.0
	for j := range root {
		want += square(&root[j]) / n
	}
	for range n - 1 { // a turn of the shortest and the longest makes the one of them as long as wanted
		low, high := 0, 0
		for j := range root {
			if square(&root[j]) < square(&root[low]) {
				low = j
			}
			if square(&root[j]) > square(&root[high]) {
				high = j
			}
		}
		a, b := &root[low], &root[high]
		x, y, cross := square(a), square(b), 0.0
		for j := range peopleDim {
			cross += a[j] * b[j]
		}
		if !(y > want) || !(x < want) {
			break
		}
		// of t = tan: (x + 2 t cross + t^2 y)/(1 + t^2) = want
		t := (want - x) / (cross + math.Sqrt(max(cross*cross+(y-want)*(want-x), 0)))
		c := 1 / math.Sqrt(1+t*t)
		for j := range a {
			a[j], b[j] = c*(a[j]+t*b[j]), c*(b[j]-t*a[j])
		}
	}
	out := make(curator.Person, n)
	for j := range root {
		out[j] = convex.Example{Value: append([]float64(nil), root[j][:peopleDim]...), Label: root[j][peopleDim]}
	}
	return out
}

// An objective is the population's mean loss and a ridge: a quadratic form, up to a constant, around its minimiser.
type objective struct {
	curvature [peopleDim][peopleDim]float64
	best      []float64
}

// objective returns the objective with this ridge.
func (p *population) objective(ridge float64) *objective {
	mean := make([]float64, packed(peopleDim+1))
	p.between(mean, p.sums, 0, p.size)
	var o objective
	side, at := make([]float64, peopleDim), 0
	for j := range peopleDim + 1 {
		for k := j; k <= peopleDim; k++ {
			switch v := mean[at]; {
			case k < peopleDim:
				o.curvature[j][k], o.curvature[k][j] = v, v
			case j < peopleDim:
				side[j] = v
			}
			at++
		}
	}
	for j := range o.curvature {
		o.curvature[j][j] += ridge
	}
	o.best = make([]float64, peopleDim)
	for range 4000 { // curvatures are near 0.1 + ridge in all directions
		g := o.times(o.best)
		for j := range g {
			o.best[j] -= (g[j] - side[j]) / (2*0.1 + ridge)
		}
	}
	return &o
}

func (o *objective) times(x []float64) []float64 {
	out := make([]float64, len(x))
	for j := range out {
		for k, v := range x {
			out[j] += o.curvature[j][k] * v
		}
	}
	return out
}

// excess returns by how much the objective is larger than at its minimiser.
func (o *objective) excess(theta []float64) (sum float64) {
	off := make([]float64, len(theta))
	for j := range off {
		off[j] = theta[j] - o.best[j]
	}
	for j, v := range o.times(off) {
		sum += v * off[j] / 2
	}
	return sum
}
