package randomizer

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// inBall checks rule and theorem in big integers: the sum of squares of doubled positions against (g 2^24)^2.
func inBall(levels uint32, at []int64) bool {
	sum := new(big.Int)
	for _, s := range at {
		doubled := big.NewInt(s)
		doubled.Lsh(doubled, 1)
		sum.Add(sum, doubled.Mul(doubled, doubled))
	}
	r := new(big.Int).Lsh(big.NewInt(int64(levels)), CoinBits)
	return sum.Cmp(r.Mul(r, r)) <= 0
}

// exactClip returns the position of clip_L(x) in grid steps, with 300 bits.
func exactClip(p Params, x []float64) []*big.Float {
	big300 := func(v float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(v) }
	sum := big300(0)
	for _, v := range x {
		w := big300(v)
		sum.Add(sum, w.Mul(w, w))
	}
	norm := new(big.Float).SetPrec(300).Sqrt(sum)
	if l := big300(p.ClipNorm); norm.Cmp(l) < 0 {
		norm = l
	}
	out := make([]*big.Float, len(x))
	for j, v := range x {
		out[j] = big300(v)
		out[j].Mul(out[j], big300(float64(uint64(p.Levels)<<(CoinBits-1))))
		out[j].Quo(out[j], norm)
	}
	return out
}

func checkSnap(t interface{ Fatalf(string, ...any) }, p Params, x []float64) {
	at := make([]int64, len(x))
	if !newBall(p).snap(at, x) {
		t.Fatalf("%+v: a finite vector was refused", p)
	}
	if !inBall(p.Levels, at) {
		t.Fatalf("%+v: position outside the ball", p)
	}
	for j, want := range exactClip(p, x) {
		// At most a step and 2^-46 relative (floating point and shrinking) from the clipped vector, and never beyond it
		// by more than rounding.
		w, _ := want.Float64()
		got := float64(at[j])
		slack := math.Abs(w) * 0x1p-46
		if math.Abs(got-w) > 1+slack || math.Abs(got) > math.Abs(w)+slack {
			t.Fatalf("%+v: coordinate %d at %v, the clipped vector is at %v", p, j, got, w)
		}
	}
}

func drawParams(rt *rapid.T, dim int) Params {
	return Params{
		Dim:      dim,
		ClipNorm: rapid.SampledFrom([]float64{minClipNorm, 1e-3, 1, 1 / 3.0, math.Pi, 1e9, maxClipNorm}).Draw(rt, "L"),
		Levels: rapid.OneOf(rapid.Uint32Range(1, 9), rapid.Uint32Range(1, MaxLevels),
			rapid.Just(uint32(MaxLevels)), rapid.Just(uint32(MaxLevels-1))).Draw(rt, "g"),
		Trials: 3,
		Coin:   Fair,
	}
}

func TestBallHoldsForAnyVector(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := rapid.SliceOfN(rapid.OneOf(
			rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64),
			rapid.Float64Range(-4, 4),
			rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64,
				math.MaxFloat64, -math.MaxFloat64, 1e154, 1.4e154, -1e-310}),
		), 1, 40).Draw(rt, "x")
		checkSnap(rt, drawParams(rt, len(x)), x)
	})
}

// Vectors of norm L up to rounding, where plain floats leave the ball.
func TestBallHoldsOnTheSphere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dim := rapid.IntRange(1, 60).Draw(rt, "d")
		p := drawParams(rt, dim)
		x := make([]float64, dim)
		kind := rapid.IntRange(0, 3).Draw(rt, "kind")
		seed := rapid.SliceOfN(rapid.Float64Range(-1, 1), dim, dim).Draw(rt, "direction")
		for j := range x {
			x[j] = []float64{seed[j], 1, float64(j % 2), 0}[kind]
		}
		if kind == 3 {
			x[dim-1] = -1
		}
		norm, _ := norm2(x)
		if norm == 0 {
			rt.Skip("no direction")
		}
		for j := range x {
			x[j] *= p.ClipNorm / norm
		}
		bump := rapid.SampledFrom([]float64{1, 1 + 0x1p-52, 1 - 0x1p-53, 1 + 0x1p-40, 1.5}).Draw(rt, "factor")
		for j := range x {
			x[j] *= bump
		}
		checkSnap(rt, p, x)
	})
}

// A corner of the ball reaches the ends of the lattice exactly, for odd and even g.
func TestBallKeepsItsPoles(t *testing.T) {
	for _, levels := range []uint32{1, 2, 7, 12, MaxLevels} {
		b := newBall(Params{ClipNorm: 3, Levels: levels})
		at := make([]int64, 2)
		for _, sign := range []float64{1, -1} {
			if !b.snap(at, []float64{sign * 3, 0}) || at[0] != int64(sign)*int64(b.radius) || at[1] != 0 {
				t.Errorf("g = %d: pole %v is at %v of %d steps", levels, sign, at, b.radius)
			}
		}
	}
}

func TestBallSendsNonFiniteToTheCentre(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		at := []int64{5, 5, 5}
		if newBall(Params{ClipNorm: 1, Levels: 4}).snap(at, []float64{1, bad, 1e308}) || at[0] != 0 || at[1] != 0 ||
			at[2] != 0 {
			t.Errorf("%v: position %v, want the centre and false", bad, at)
		}
	}
}

// The shrinking loop ends inside the ball, and not far inside, even from a scale that is far too large.
func TestBallShrinks(t *testing.T) {
	b := newBall(Params{ClipNorm: 1, Levels: 3})
	x := []float64{0.6, 0.8}
	at := make([]int64, 2)
	if b.fill(at, x, 1, float64(b.radius)*(1+0x1p-20)) {
		t.Fatal("a position outside the ball passed the check")
	}
	b.settle(at, x, 1, float64(b.radius)*(1+0x1p-20))
	if want := 0.6 * float64(b.radius); !inBall(3, at) || math.Abs(float64(at[0])-want) > 0x1p-19*want {
		t.Errorf("settled at %v of %d steps", at, b.radius)
	}
}

// A vector whose norm is L to the last digit may lie outside of the ball by one square of a step, which integers
// alone see: at radius 2^29, (1 - 2^-29)^2 + (2^-14)^2 is 1 + 2^-58, and 1 as a float.
func TestBallHoldsWhereFloatsDoNotSee(t *testing.T) {
	p := Params{Dim: 2, ClipNorm: 1, Levels: 64, Trials: 3, Coin: Fair}
	b := newBall(p)
	if b.radius != 1<<29 {
		t.Fatalf("the radius is %d, want 2^29", b.radius)
	}
	x := []float64{1 - 0x1p-29, 0x1p-14}
	if norm, _ := norm2(x); norm != 1 {
		t.Fatalf("the norm is %v, want 1", norm)
	}
	checkSnap(t, p, x)
}
