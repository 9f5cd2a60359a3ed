package randomizer

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/dptest"
)

// farApart returns the distance of two vectors after projection on the ball of radius l, in 200 bits.
func farApart(x, y []float64, l float64) *big.Float {
	number := func(v float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(v) }
	norm := func(x []*big.Float) *big.Float {
		sum := number(0)
		for _, v := range x {
			sum.Add(sum, number(0).Mul(v, v))
		}
		return sum.Sqrt(sum)
	}
	project := func(x []float64) []*big.Float {
		out := make([]*big.Float, len(x))
		for j, v := range x {
			out[j] = number(v)
		}
		if n := norm(out); n.Cmp(number(l)) > 0 {
			for _, v := range out {
				v.Mul(v, number(l)).Quo(v, n)
			}
		}
		return out
	}
	a, b := project(x), project(y)
	for j := range a {
		a[j].Sub(a[j], b[j])
	}
	return norm(a)
}

// TestMinimizersMoveByTheirShift: two vectors that are 2L/K (1 + 2^-18) apart after clipping lie at most
// MinimizerShift apart, in the lattice's ball; close vectors and dimensions show what snapping adds.
func TestMinimizersMoveByTheirShift(t *testing.T) {
	var closest float64
	rapid.Check(t, func(rt *rapid.T) {
		dim := rapid.SampledFrom([]int{1, 2, 5, 40}).Draw(rt, "d")
		p := drawParams(rt, dim)
		p.Minimizer, p.Levels = true, rapid.SampledFrom([]uint32{1, 19, 4000, 1 << 20, MaxLevels - 1}).Draw(rt, "g")
		p.Trials, p.Window = 2, 0
		v, err := NewVectorSum(p, dptest.Source(t, 1))
		if err != nil {
			rt.Fatal(err)
		}
		place := func(x []float64) []int64 {
			if err := v.Add(x); err != nil {
				rt.Fatal(err)
			}
			at := slices.Clone(v.place)
			v.Draw(nil)
			if !inBall(p.Levels, at) {
				rt.Fatalf("%+v: %v lies outside the ball", p, x)
			}
			return at
		}
		coordinate := rapid.Float64Range(-1.2, 1.2)
		x := make([]float64, dim)
		for j := range x {
			x[j] = p.ClipNorm * coordinate.Draw(rt, "x") / math.Sqrt(float64(dim))
		}
		moved := slices.Clone(x)
		for j := range moved { // by anything from a few steps to a diameter
			moved[j] += p.ClipNorm * coordinate.Draw(rt, "move") * math.Exp2(rapid.Float64Range(-45, 1).Draw(rt, "size"))
		}
		for _, y := range [][]float64{moved, negated(x)} {
			apart, _ := new(big.Float).Quo(farApart(x, y, p.ClipNorm), big.NewFloat(p.ClipNorm)).Float64()
			if apart == 0 {
				continue
			}
			units := min(2*(1+0x1p-18)/apart*(1-1e-14), 1<<60) // as many as let them be that far apart
			if units < 1 {
				units = 1
			}
			shift := MinimizerShift(int(p.Levels), uint64(units), dim)
			// In the bound units are a whole number; here they are the exact ones, which is sharper.
			exact := shift + float64(p.Levels)*(1+0x1p-18)*(1/units-1/float64(uint64(units)))
			square, _ := new(big.Float).SetInt(distance2(place(x), place(y))).Float64()
			got := math.Sqrt(square) / (1 << CoinBits)
			if got > exact*(1+1e-15) {
				rt.Fatalf("%+v: %v and %v lie %v levels apart, want at most %v", p, x, y, got, exact)
			}
			closest = max(closest, got/exact)
			if most := Shift(int(p.Levels), apart/2*(1+1e-14), dim); got > most*(1+1e-15) {
				rt.Fatalf("%+v: %v and %v lie %v levels apart, want at most %v", p, x, y, got, most)
			}
		}
	})
	if closest < 0.99 {
		t.Errorf("the closest pair is %v of the bound: the search has no power", closest)
	}
}

// TestShiftOfARatio checks that Shift at 1/K equals MinimizerShift up to the margin of a minimiser's own rounding,
// that clipping bounds it, and that an invalid ratio gives no shift.
func TestShiftOfARatio(t *testing.T) {
	for _, g := range []int{1, 100, 1 << 20} {
		for _, k := range []uint64{1, 3, 1000} {
			if got, want := Shift(g, (1+0x1p-18)/float64(k), 7), MinimizerShift(g, k, 7); k > 1 && math.Abs(got/want-1) > 1e-15 {
				t.Errorf("g %d, K %d: %v, want %v", g, k, got, want)
			}
		}
		if Shift(g, 5, 7) != Shift(g, 1, 7) || Shift(g, 0, 7) <= 0 {
			t.Errorf("g %d: %v at 5, %v at 1, %v at 0", g, Shift(g, 5, 7), Shift(g, 1, 7), Shift(g, 0, 7))
		}
	}
	for _, ratio := range []float64{-1, math.NaN()} {
		if got := Shift(10, ratio, 2); !math.IsNaN(got) {
			t.Errorf("a ratio of %v gives %v", ratio, got)
		}
	}
}

// A report of a minimiser is one vector, however many units it is about: its total is read as that of one.
func TestMinimizerIsOneVector(t *testing.T) {
	p := Params{Dim: 2, ClipNorm: 3, Levels: 400, Trials: 0, Units: 50, Minimizer: true, Coin: Fair}
	v, err := NewVectorSum(p, dptest.Source(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	x := []float64{1.5, -2}
	for range 3 {
		if err := v.Add(x); err != nil {
			t.Fatal(err)
		}
		if v.Add(x) == nil {
			t.Error("a second vector was added")
		}
		sum := make([]uint64, 2)
		for j, c := range v.Draw(nil) {
			sum[j] = uint64(c)
		}
		got, err := p.Decode(nil, sum, 1, 0)
		if err != nil || math.Abs(got[0]-x[0]) > 2*3./400 || math.Abs(got[1]-x[1]) > 2*3./400 {
			t.Errorf("%v read as %v: %v", x, got, err)
		}
	}
	if _, err := v.Encode(nil, x); err != nil {
		t.Error(err)
	}
	p.Units = 400<<23 + 1
	if p.Validate() == nil {
		t.Error("more units than steps are accepted")
	}
}
