package curator

import (
	"math"
	"math/rand/v2"

	"github.com/panlearn/panlearn/learner/convex"
)

// A blur smooths a loss by convolution with the uniform law on a ball: f_r(x) = E f(x + y). Of an L-Lipschitz
// convex f it is convex, L-Lipschitz and L sqrt(d)/r-smooth, and f <= f_r <= f + L r (Duchi, Bartlett and
// Wainwright 2012; docs/proofs/curator.md, smoothing). A gradient of f at x + y with a fresh y has f_r's gradient
// at x as its mean, and a norm of at most L: draws do not depend on rows, and are nothing that privacy rests on.
type blur struct {
	radius float64 // 0: none
	random *rand.Rand
	at     []float64
}

func newBlur(radius float64, dim int, entropy rand.Source) *blur {
	return &blur{radius, rand.New(entropy), make([]float64, dim)}
}

// around returns x, or x plus a fresh draw. The result is valid until the next call.
func (b *blur) around(x []float64) []float64 {
	if b.radius == 0 {
		return x
	}
	var square float64
	for j := range b.at {
		v := b.random.NormFloat64()
		b.at[j] = v
		square += v * v
	}
	scale := b.radius * math.Pow(b.random.Float64(), 1/float64(len(x))) / math.Sqrt(max(square,
		math.SmallestNonzeroFloat64))
	for j, v := range x {
		b.at[j] = v + scale*b.at[j]
	}
	return b.at
}

// blurredSmoothness returns the smoothness of f_r, the loss smoothed over a ball of the radius.
func blurredSmoothness(lipschitz, radius float64, dim int) float64 {
	return lipschitz * math.Sqrt(float64(dim)) / radius
}

// gradient overwrites dst with the mean of a person's clipped gradients at x, or of their blurred losses; its
// norm is at most most. A person without rows has the gradient 0. part is scratch.
func (b *blur) gradient(dst, part []float64, loss convex.Loss, who Person, x []float64, most float64) {
	clear(dst)
	for _, row := range who {
		convex.ClippedGradient(loss, part, b.around(x), row, most)
		for j, v := range part {
			dst[j] += v
		}
	}
	for j := range dst {
		dst[j] /= float64(max(len(who), 1))
	}
	convex.Clip(dst, most)
}
