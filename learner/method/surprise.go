package method

// A past holds the expectations about some coordinates before the last round.
type past struct {
	own, noise float64 // see deviation
	curvature  float64 // of the step; 0 if there was none or it raised the alarm
}

// surprised sets the surprise: the number of deviations by which the last round was farther than expected from the
// model before it, or, if that is more, the last two rounds from the model before both. After a small change the
// filters move a little and expect more, so one round alone may not be surprising enough. It takes the largest over
// intercepts, weights, and both together.
func (b *Bank) surprised(theta, g []float64, curvatures [2]float64, now [2]deviation, variance, noise float64) {
	moved := make([]float64, len(theta))
	if b.last.point != nil {
		for i, x := range theta {
			moved[i] = x - b.last.point[i]
		}
	}
	dims := [2]int{b.intercepts.dim, b.weights.dim}
	moves, gradients, before := b.blocks(moved), b.blocks(g), b.blocks(b.last.gradient)
	var both [2]deviation
	two, known := true, b.last.variance
	for i, d := range now {
		e := curvatures[i]
		now[i].uneven = d.unevenly(variance/e/e, noise/e/e, dims[i])
		p := b.since[i]
		if b.since[i] = (past{d.own, d.noise, e}); p.curvature == 0 {
			two = two && dims[i] == 0
			continue
		}
		r1, r2 := known/p.curvature/p.curvature, variance/e/e
		last, here := r2/(r1+r2), r1/(r1+r2)
		r := here * r2
		for k, x := range gradients[i] {
			off := here*(moves[i][k]-x/e) - last*before[i][k]/p.curvature
			both[i].seen += float64(off * off)
		}
		both[i].expected, both[i].noise = p.own+p.noise*r, p.noise
		both[i].uneven = both[i].unevenly(r, here*here*noise/e/e+last*last*b.last.noise/p.curvature/p.curvature, dims[i])
	}
	b.surprise = mostSurprising(now, dims)
	if two {
		b.surprise = max(b.surprise, mostSurprising(both, dims))
	}
	if b.surprise > Alarm {
		b.since = [2]past{}
	}
}

// unevenly returns the part of the expected squared distance that may lie in few directions. noise is the variance of a
// coordinate, and even the part of it that is equal in all coordinates.
func (d deviation) unevenly(noise, even float64, dim int) float64 {
	return max(0, d.noise*noise-float64(dim)*even)
}

func mostSurprising(d [2]deviation, dims [2]int) float64 {
	return max(d[0].surprise(dims[0]), d[1].surprise(dims[1]), d[0].and(d[1]).surprise(dims[0]+dims[1]))
}

// blocks returns the intercepts and the weights of a vector; nil for nil.
func (b *Bank) blocks(v []float64) (out [2][]float64) {
	if v != nil {
		out[0], out[1] = b.split(v)
	}
	return out
}
