package randomizer

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/dptest"
)

// exactCDF returns 2^(24 M) C(k) for k = 0, ..., M as integers.
func exactCDF(trials uint64, coin Coin) []*big.Int {
	q := big.NewInt(1<<CoinBits - int64(coin))
	c := big.NewInt(int64(coin))
	out := make([]*big.Int, trials+1)
	sum := new(big.Int)
	for k := range out {
		term := new(big.Int).Binomial(int64(trials), int64(k))
		term.Mul(term, new(big.Int).Exp(c, big.NewInt(int64(k)), nil))
		term.Mul(term, new(big.Int).Exp(q, big.NewInt(int64(trials)-int64(k)), nil))
		out[k] = new(big.Int).Set(sum.Add(sum, term))
	}
	return out
}

// The bounds (*) of the certificate, against exact rationals: N-1 < 2^P C(k) < N+2.
func TestCertificate(t *testing.T) {
	for _, trials := range []uint64{1, 2, 7, 100, 700} {
		for _, coin := range []Coin{1, 12345, Fair / 7, Fair, 1<<CoinBits - 1} {
			cdf := exactCDF(trials, coin)
			for _, prec := range []uint{8, 64, 128, 256} {
				w := newWeights(trials, coin, prec)
				if w.complete != (w.first == 0) || w.full != (w.first+uint64(w.len()) == trials+1) {
					t.Errorf("trials %d, coin %d, P %d: ends are mislabelled", trials, uint32(coin), prec)
				}
				for i, n := range w.starts() {
					k := int(w.first) + i - 1
					// 2^P C(k), scaled by 2^(24 M).
					exact := new(big.Int)
					if k >= 0 {
						exact.Lsh(cdf[k], prec)
					}
					low := new(big.Int).Sub(n, big.NewInt(1))
					low.Lsh(low, uint(CoinBits*trials))
					high := new(big.Int).Add(n, big.NewInt(2))
					high.Lsh(high, uint(CoinBits*trials))
					if low.Cmp(exact) >= 0 || high.Cmp(exact) <= 0 {
						t.Fatalf("trials %d, coin %d, P %d: outcome %d escapes its bounds", trials, uint32(coin), prec, k)
					}
				}
			}
		}
	}
}

// TestInversionIsExactForEveryWord checks that, for any words and any precision of the table, the outcome equals that
// of exact inversion. Words are drawn close to the values of the distribution function, where only more precision can
// tell.
func TestInversionIsExactForEveryWord(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		trials := rapid.Uint64Range(1, 80).Draw(rt, "trials")
		coin := Coin(rapid.Uint32Range(1, 1<<CoinBits-1).Draw(rt, "coin"))
		prec := rapid.SampledFrom([]uint{8, 16, 32, 64, 128}).Draw(rt, "P")
		table := newInversion(trials, coin, prec)
		cdf := exactCDF(trials, coin)

		// U = C(k) + off 2^-shift, cut to 1280 bits; the last words are never needed.
		const words = 20
		k := rapid.IntRange(-1, int(trials)).Draw(rt, "k")
		u := new(big.Int)
		if k >= 0 {
			u.Rsh(u.Lsh(cdf[k], 64*words), uint(CoinBits*trials))
		}
		off := big.NewInt(rapid.Int64Range(-1000, 1000).Draw(rt, "off"))
		off.Lsh(off, 64*words-rapid.UintRange(1, 600).Draw(rt, "shift"))
		whole := new(big.Int).Lsh(big.NewInt(1), 64*words)
		if off.Mod(off, whole).Sign() == 0 {
			rt.Skip("U is a value of the distribution function: probability 0")
		}
		u.Add(u, off).Mod(u, whole)

		want := invertExactly(cdf, u, 64*words, trials)
		list := splitWords(u, words)
		if got := table.sample(&dptest.Words{T: t, List: list}); got != want {
			rt.Fatalf("outcome %d, want %d", got, want)
		}
	})
}

// invertExactly returns the k with C(k-1) <= u 2^-size < C(k).
func invertExactly(cdf []*big.Int, u *big.Int, size uint, trials uint64) (k uint64) {
	cut := new(big.Int).Lsh(u, uint(CoinBits*trials))
	for cut.Cmp(new(big.Int).Lsh(cdf[k], size)) >= 0 {
		k++
	}
	return k
}

// splitWords cuts an integer of n words, the most significant first.
func splitWords(u *big.Int, n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		w := new(big.Int).Rsh(u, uint(64*(n-1-i)))
		out[i] = w.And(w, new(big.Int).SetUint64(^uint64(0))).Uint64()
	}
	return out
}

// The words that rapid is unlikely to find: within a few units of an entry of the table at its own precision, and next
// to 0 and 1, where the table leaves outcomes out.
func TestInversionAtTheEdges(t *testing.T) {
	const words = 80
	one := new(big.Int).Lsh(big.NewInt(1), 64*words)
	for _, c := range []struct {
		trials uint64
		coin   Coin
	}{{40, Fair/3 + 1}, {130, 12345}, {9, 5}} {
		cdf := exactCDF(c.trials, c.coin)
		for _, prec := range []uint{8, 64, 128} {
			table := newInversion(c.trials, c.coin, prec)
			check := func(u *big.Int) {
				t.Helper()
				if u.Sign() < 0 || u.Cmp(one) >= 0 {
					return
				}
				want := invertExactly(cdf, u, 64*words, c.trials)
				if got := table.sample(&dptest.Words{T: t, List: splitWords(u, words)}); got != want {
					t.Errorf("trials %d, coin %d, P %d: outcome %d, want %d", c.trials, uint32(c.coin), prec, got, want)
				}
			}
			for i := range table.hi {
				entry := new(big.Int).SetUint64(table.hi[i])
				entry.Lsh(entry, 64).Or(entry, new(big.Int).SetUint64(table.lo[i]))
				for off := int64(-4); off <= 4; off++ {
					u := new(big.Int).Lsh(big.NewInt(off), 128-prec)
					u.Lsh(u.Add(u, entry), 64*words-128)
					// Not the end of the interval itself, which can be a value of C.
					check(u.Add(u, big.NewInt(1)))
					check(u.Add(u, new(big.Int).Lsh(big.NewInt(1), 64*words-129)))
				}
			}
			for j := uint(1); j < 2000; j += 7 {
				low := new(big.Int).Lsh(big.NewInt(3), 64*words-1-j)
				check(low)
				check(low.Sub(one, low))
			}
		}
	}
}

// At 8 bits most draws need more precision; the law must not change.
func TestInversionAtTinyPrecision(t *testing.T) {
	const trials, draws = 30, 30000
	table := newInversion(trials, Fair/2, 8)
	src := dptest.Source(t, 11)
	counts := make([]uint64, trials+1)
	for range draws {
		counts[table.sample(src)]++
	}
	dptest.ChiSquare(t, "Bin(30, 1/4) from 8 bits", counts, dptest.BinomialProbabilities(trials, 0.25), dptest.Alpha)
}

func TestInversionGuide(t *testing.T) {
	for _, trials := range []uint64{1, 50, 100000} {
		table := newInversion(trials, Fair/3, defaultPrecision)
		src := dptest.Source(t, trials)
		for i := range 2000 {
			u := src.Uint64()
			if i < len(table.hi) {
				u = table.hi[i]
			}
			at := table.find(u)
			if table.hi[at] > u || at+1 < len(table.hi) && table.hi[at+1] <= u {
				t.Fatalf("trials %d: entry %d is not the last at or below a word", trials, at)
			}
		}
	}
}

func ExampleBinomial() {
	noise, err := NewBinomial(1000, Fair)
	if err != nil {
		fmt.Println(err)
		return
	}
	src := NewEntropy()
	k := noise.Sample(src)
	fmt.Println(k > 300 && k < 700) // 12.6 standard deviations
	// Output: true
}
