package accounting

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer"
)

// coinBits is the resolution of p, which keeps N*p an integer over 2^coinBits.
const coinBits = randomizer.CoinBits

// MaxTrials bounds the trials of one Mechanism, exclusively.
const MaxTrials = 1 << 29

// binomial is Bin(n, k/2^24). Differences x - n*p are formed in integers, which
// needs n < 2^38.
type binomial struct {
	n int64
	k int64
}

// gridP returns p as k/2^24, or an error where it is not on the grid.
func gridP(p float64) (int64, error) {
	c, err := randomizer.CoinFromFloat(p)
	if err != nil {
		return 0, fmt.Errorf("p %v: want a multiple of 2^-%d strictly between 0 and 1", p, coinBits)
	}
	return int64(c), nil
}

func (b binomial) p() float64 { return float64(b.k) / (1 << coinBits) }
func (b binomial) q() float64 { return float64((1<<coinBits)-b.k) / (1 << coinBits) }

func (b binomial) variance() float64 { return float64(b.n) * b.p() * b.q() }

func (b binomial) mode() int64 {
	return int64(float64(b.n+1) * b.p())
}

// pmf computes Loader's saddle-point form ("Fast and Accurate Computation of Binomial Probabilities", 2000). Its
// relative error stays near 1e-13, unlike that of differences of log-gamma, which lose n log n units of the last
// place.
func (b binomial) pmf(x int64) float64 {
	if x < 0 || x > b.n {
		return 0
	}
	n := float64(b.n)
	if x == 0 {
		return math.Exp(n * math.Log1p(-b.p()))
	}
	if x == b.n {
		return math.Exp(n * math.Log1p(-b.q()))
	}
	fx, fy := float64(x), float64(b.n-x)
	diff := float64(x<<coinBits-b.k*b.n) / (1 << coinBits)
	lc := stirlingError(b.n) - stirlingError(x) - stirlingError(b.n-x) - deviance(fx, diff) - deviance(fy, -diff)
	return math.Exp(lc) * math.Sqrt(n/(2*math.Pi*fx*fy))
}

// deviance returns x log(x/m) + m - x for m = x - diff, without cancellation.
func deviance(x, diff float64) float64 {
	m := x - diff
	v := diff / (x + m)
	if math.Abs(v) >= 0.5 {
		return x*math.Log(x/m) - diff
	}
	s := diff * v
	term := 2 * x * v
	v *= v
	for j := 3.0; ; j += 2 {
		term *= v
		next := s + term/j
		if next == s {
			return s
		}
		s = next
	}
}

// stirlingError returns log(n!) - log(sqrt(2 pi n) (n/e)^n).
func stirlingError(n int64) float64 {
	if n < 16 {
		return smallStirling[n]
	}
	x := float64(n)
	y := 1 / (x * x)
	return (1./12 - (1./360-(1./1260-(1./1680-y/1188)*y)*y)*y) / x
}

// smallStirling holds stirlingError(0..15); entry 0 is never used.
var smallStirling = [16]float64{
	0,
	0.0810614667953272582196702,
	0.0413406959554092940938221,
	0.02767792568499833914878929,
	0.02079067210376509311152277,
	0.01664469118982119216319487,
	0.01387612882307074799874573,
	0.01189670994589177009505572,
	0.010411265261972096497478567,
	0.009255462182712732917728637,
	0.008330563433362871256469318,
	0.007573675487951840794972024,
	0.006942840107209529865664152,
	0.006408994188004207068439631,
	0.005951370112758847735624416,
	0.005554733551962801371038690,
}
