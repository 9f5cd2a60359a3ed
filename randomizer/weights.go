package randomizer

import (
	"encoding/binary"
	"iter"
	"math/big"
	"math/bits"
)

// weights are the fixed-point binomial weights w(k) of the certificate at type inversion, for the consecutive outcomes
// from first whose weight is not zero.
type weights struct {
	first    uint64
	complete bool // no outcome was omitted at the lower end, so that the first start is exactly 0
	full     bool // the same at the upper end: the last end is exactly 1
	prec     uint
	words    int      // of 64 bits, in one weight, least significant first
	w        []uint64 // weight of outcome first+i at [i*words, (i+1)*words)
	total    *big.Int // Z
}

func newWeights(trials uint64, coin Coin, prec uint) *weights {
	c, q := uint64(coin), uint64(1<<CoinBits-coin)
	mode := (trials + 1) * c >> CoinBits
	scale := prec + 63 // F
	words := int(scale/64) + 1
	cur := make([]uint64, words)
	start := func() {
		clear(cur)
		cur[scale/64] = 1 << (scale % 64)
	}

	var down []uint64 // outcomes mode-1, mode-2, ...
	start()
	k := mode
	for k > 0 {
		scaleDown(cur, k*q, (trials-k+1)*c)
		if isZero(cur) {
			break
		}
		down = append(down, cur...)
		k--
	}
	w := &weights{first: k, complete: k == 0, prec: prec, words: words, total: new(big.Int)}
	w.w = make([]uint64, 0, 2*len(down)+words)
	for i := len(down) - words; i >= 0; i -= words {
		w.w = append(w.w, down[i:i+words]...)
	}
	start()
	w.w = append(w.w, cur...)
	for k = mode; k < trials; k++ {
		scaleDown(cur, (trials-k)*c, (k+1)*q)
		if isZero(cur) {
			break
		}
		w.w = append(w.w, cur...)
	}
	w.full = k == trials
	var term adder
	for i := range w.len() {
		term.add(w.total, w.at(i))
	}
	return w
}

func (w *weights) len() int          { return len(w.w) / w.words }
func (w *weights) at(i int) []uint64 { return w.w[i*w.words : (i+1)*w.words] }

// starts yields i and N(first+i-1) = floor(2^P c(first+i-1)/Z) for i = 0, 1, ..., len-1. The integer is the receiver's
// to change until the next step.
func (w *weights) starts() iter.Seq2[int, *big.Int] {
	return func(yield func(int, *big.Int) bool) {
		var term adder
		sum, n := new(big.Int), new(big.Int)
		for i := range w.len() {
			n.Lsh(sum, w.prec)
			if !yield(i, n.Quo(n, w.total)) {
				return
			}
			term.add(sum, w.at(i))
		}
	}
}

// invert returns the outcome that is certain when the first drawn bits of U are u, if there is one. drawn >= prec.
func (w *weights) invert(u *big.Int, drawn uint) (uint64, bool) {
	extra := drawn - w.prec
	unit := new(big.Int).Lsh(big.NewInt(1), extra)
	after := new(big.Int).Add(u, big.NewInt(1))
	// lower <= U must hold for the start of the outcome, and after <= upper for its end.
	lower, upper := new(big.Int), new(big.Int)
	startOK := w.complete
	for i, n := range w.starts() {
		n.Lsh(n, extra)
		upper.Sub(n, unit)
		if i > 0 && after.Cmp(upper) <= 0 {
			return w.first + uint64(i) - 1, startOK
		}
		if i > 0 || !w.complete {
			lower.Add(n, unit).Add(lower, unit)
			startOK = lower.Cmp(u) <= 0
		}
	}
	upper.Lsh(unit, w.prec)
	if !w.full {
		upper.Sub(upper, unit)
	}
	return w.first + uint64(w.len()) - 1, startOK && after.Cmp(upper) <= 0
}

// scaleDown replaces x by floor(x num/den), for 0 < num <= den.
func scaleDown(x []uint64, num, den uint64) {
	var carry uint64
	for i, v := range x {
		hi, lo := bits.Mul64(v, num)
		lo, c := bits.Add64(lo, carry, 0)
		x[i], carry = lo, hi+c
	}
	// x num/den <= x fits len(x) words, so that carry < den and Div64 cannot overflow.
	for i := len(x) - 1; i >= 0; i-- {
		x[i], carry = bits.Div64(carry, x[i], den)
	}
}

func isZero(x []uint64) bool {
	for _, v := range x {
		if v != 0 {
			return false
		}
	}
	return true
}

// An adder adds words to big integers without allocating for each.
type adder struct {
	buf  []byte
	term big.Int
}

func (a *adder) add(sum *big.Int, x []uint64) {
	a.buf = resize(a.buf, 8*len(x))
	for i, v := range x {
		binary.BigEndian.PutUint64(a.buf[8*(len(x)-1-i):], v)
	}
	sum.Add(sum, a.term.SetBytes(a.buf))
}
