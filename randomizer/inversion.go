package randomizer

import (
	"math/big"
	"math/bits"
	"math/rand/v2"
)

const (
	maxInversionTrials = 1 << 31
	// defaultPrecision is P below. Two words of U leave the outcome open with probability below 2^-104.
	defaultPrecision = 128
)

// An inversion draws from Bin(M, p), M <= 2^31, as the outcome k with C(k-1) <= U < C(k), where U is uniform in [0, 1)
// and C is the distribution function. U is drawn lazily, word by word.
//
// Certificate. Let W(k) = 2^F P(k)/P(k0) with k0 = floor((M+1)p) the mode and F = P+63. Away from the mode the ratios
// of neighbouring weights are rational and at most 1; w(k0) = 2^F and w(next) = floor(w ratio). So 0 <= W(k) - w(k)
// <= t at distance t from the mode. The recurrence stops at the first w = 0 on each side, after n- and n+ steps;
// there and beyond, W is at most n+1. Summed over everything, computed and omitted, the weights miss at most
//
//	E <= n-(n- + 1)/2 + n+(n+ + 1)/2 + (M - n- - n+)(max(n-, n+) + 1) < M^2 < 2^63.
//
// With c(k) the sum of w up to k and Z that of all w, c(k)/(Z+E) <= C(k) <= (c(k)+E)/Z, hence |C(k) - c(k)/Z| <= E/Z,
// and Z >= 2^F makes that less than 2^-P. Finally N(k) = floor(2^P c(k)/Z), so
//
//	N(k) - 1 < 2^P C(k) < N(k) + 2.                                                          (*)
//
// If the bits of U drawn so far say U in [u, u+ulp), and that interval lies between the upper bound (*) of C(k-1) and
// the lower bound (*) of C(k), then U lies in [C(k-1), C(k)) whatever bits follow, and k is what exact inversion
// returns. Otherwise more bits of the same U are drawn and P is doubled, until the interval is inside: the bounds
// close in on every U that is not a value of C, that is with probability 1. So the outcome equals that of exact
// inversion for every U, and exactly binomial.
type inversion struct {
	trials uint64
	coin   Coin
	prec   uint // P
	first  uint64
	// Entry i starts outcome first+i: N(first+i-1) 2^(128-P) = hi[i] 2^64 + lo[i]. hi[0] = lo[0] = 0.
	hi, lo []uint64
	// guide[u>>shift] is the last entry with hi <= (u>>shift)<<shift; one more element ends the last bucket.
	guide []uint32
	shift uint
}

func newInversion(trials uint64, coin Coin, prec uint) *inversion {
	t := &inversion{trials: trials, coin: coin, prec: prec}
	w := newWeights(trials, coin, prec)
	t.first = w.first
	t.hi = make([]uint64, w.len())
	t.lo = make([]uint64, w.len())
	word := new(big.Int)
	mask := new(big.Int).SetUint64(^uint64(0))
	for i, start := range w.starts() {
		start.Lsh(start, 128-prec)
		t.lo[i] = word.And(start, mask).Uint64()
		t.hi[i] = word.Rsh(start, 64).Uint64()
	}
	size := uint(min(bits.Len(uint(w.len())), 16))
	t.shift = 64 - size
	t.guide = make([]uint32, 1<<size+1)
	i := 0
	for b := range t.guide[:1<<size] {
		for i+1 < len(t.hi) && t.hi[i+1] <= uint64(b)<<t.shift {
			i++
		}
		t.guide[b] = uint32(i)
	}
	t.guide[1<<size] = uint32(len(t.hi) - 1)
	return t
}

func (t *inversion) sample(src rand.Source) uint64 {
	u := src.Uint64()
	i := t.find(u)
	// One word: hi loses less than a unit, and (*) at most 2 units of 2^-P.
	margin := uint64(3)
	if t.prec < 64 {
		margin <<= 64 - t.prec
	}
	end := uint64(0) // 2^64
	if i+1 < len(t.hi) {
		end = t.hi[i+1]
	}
	if u-t.hi[i] > margin && end-u > margin {
		return t.first + uint64(i)
	}
	return t.sampleLong(src, u)
}

// find returns the last entry with hi <= u.
func (t *inversion) find(u uint64) int {
	b := u >> t.shift
	i, j := int(t.guide[b]), int(t.guide[b+1])
	for i < j {
		if m := int(uint(i+j+1) >> 1); t.hi[m] <= u {
			i = m
		} else {
			j = m - 1
		}
	}
	return i
}

// sampleLong goes on from the first word u of U.
func (t *inversion) sampleLong(src rand.Source, u uint64) uint64 {
	if t.prec < 128 {
		return t.sampleBig(src, new(big.Int).SetUint64(u), 64)
	}
	v := src.Uint64()
	i := t.find(u)
	for t.hi[i] == u && t.lo[i] > v {
		i--
	}
	var endHi, endLo uint64 // 2^128
	if i+1 < len(t.hi) {
		endHi, endLo = t.hi[i+1], t.lo[i+1]
	}
	below, borrow := bits.Sub64(v, t.lo[i], 0)
	belowHi, _ := bits.Sub64(u, t.hi[i], borrow)
	above, borrow := bits.Sub64(endLo, v, 0)
	aboveHi, _ := bits.Sub64(endHi, u, borrow)
	// [U, U+1) inside [start+2, end-1), in units of 2^-128.
	if (belowHi > 0 || below >= 2) && (aboveHi > 0 || above >= 2) {
		return t.first + uint64(i)
	}
	x := new(big.Int).SetUint64(u)
	return t.sampleBig(src, x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(v)), 128)
}

// sampleBig goes on from the first drawn bits of U, doubling the precision until the outcome is certain.
func (t *inversion) sampleBig(src rand.Source, u *big.Int, drawn uint) uint64 {
	for prec := 2 * t.prec; ; prec *= 2 {
		for drawn < prec {
			u.Lsh(u, 64).Or(u, new(big.Int).SetUint64(src.Uint64()))
			drawn += 64
		}
		if k, ok := newWeights(t.trials, t.coin, prec).invert(u, drawn); ok {
			return k
		}
	}
}
