package randomizer

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// far computes outOfReach without its bounds on integers.
func far(p Params, counts []uint32) bool {
	if p.Window > 0 {
		return false
	}
	g, b, sum := int64(p.Levels), int64(p.Trials), new(big.Int)
	for _, c := range counts {
		off := 2*int64(c) - g - b
		if left := big.NewInt(max(off, -off) - b - 2); left.Sign() > 0 {
			sum.Add(sum, left.Mul(left, left))
		}
	}
	return sum.Cmp(big.NewInt(g*g)) > 0
}

// constant is a source of coins that all show the same.
type constant uint64

func (c constant) Uint64() uint64 { return uint64(c) }

// TestNoDeviceIsOutOfReach: no report of a device is refused, whatever its vectors, however they are rounded, and
// whatever its trials show, even if all of them move every coordinate away from the centre.
func TestNoDeviceIsOutOfReach(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := Params{ClipNorm: 1, Coin: Fair,
			Dim: rapid.OneOf(rapid.IntRange(1, 4), rapid.IntRange(1, 70)).Draw(rt, "d"),
			Levels: rapid.OneOf(rapid.Uint32Range(1, 20), rapid.Uint32Range(1, 200), rapid.Uint32Range(1, MaxLevels)).Draw(rt,
				"g"),
			Units: rapid.Uint64Range(0, 5).Draw(rt, "units")}
		p.Minimizer = p.Units > 1 && rapid.Bool().Draw(rt, "minimizer")
		b := rapid.OneOf(rapid.Uint32Range(0, 40), rapid.Uint32Range(0, MaxTrials)).Draw(rt, "b")
		var coins rand.Source = rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)
		if how := rapid.IntRange(0, 2).Draw(rt, "rounding"); how < 2 {
			coins = constant(-uint64(how)) // all up, or none
		}
		device, err := NewVectorSum(p, coins) // which flips no trials
		if err != nil {
			rt.Fatal(err)
		}
		one := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]float64{-1, 1, 0}), rapid.Float64Range(-1e3, 1e3)), p.Dim,
			p.Dim).Draw(rt, "x")
		for range p.vectors() {
			if err := device.Add(one); err != nil {
				rt.Fatal(err)
			}
		}
		counts := device.Draw(nil)
		with := p
		with.Trials = b
		for j, c := range counts {
			if 2*uint64(c) > uint64(p.Levels) {
				counts[j] = c + b
			}
		}
		if err := NewAdder(with, 1).ValidateReport(with.Pack(nil, counts)); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestOutOfReach: counts that no vector explains are refused, and the last that one explains are not.
func TestOutOfReach(t *testing.T) {
	validate := func(p Params, counts ...uint32) error { return NewAdder(p, 1).ValidateReport(p.Pack(nil, counts)) }
	p := Params{Dim: 2, ClipNorm: 1, Levels: 100, Trials: 8, Coin: Fair}
	// The centre is at 54. 2 (89 - 54) - 10 = 60 and 2 (99 - 54) - 10 = 80 are the legs of a triangle of 100.
	for _, counts := range [][]uint32{{89, 99}, {19, 9}, {99, 19}, {54, 108}, {54, 0}} {
		if err := validate(p, counts...); err != nil {
			t.Errorf("counts %d: %v", counts, err)
		}
	}
	for _, counts := range [][]uint32{{90, 99}, {89, 100}, {18, 9}, {99, 18}, {108, 108}, {0, 0}, {0, 108}} {
		if err := validate(p, counts...); !errors.Is(err, errReportRange) {
			t.Errorf("counts %d: %v, want it refused", counts, err)
		}
	}
	good, bad := p.Pack(nil, []uint32{89, 99}), p.Pack(nil, []uint32{90, 99})
	if err := NewAdder(p, 1).ValidateReport(append(append(good, bad...), good...)); !errors.Is(err, errReportRange) {
		t.Errorf("one of three is out of reach: %v", err)
	}
	local := p
	local.Window, local.Trials = 8, 2
	if err := validate(local, 108, 108); err != nil {
		t.Errorf("with a window, of trials that nobody knows: %v", err)
	}
	pair := p
	pair.Dim = 4
	two := pair.Pack(nil, []uint32{89, 99, 19, 9})
	if err := NewAdder(pair, 1).ValidateReport(two); !errors.Is(err, errReportRange) {
		t.Errorf("two reports as one: %v, want it refused", err)
	}
	if err := NewAdder(pair, 2).ValidateReport(two); err != nil {
		t.Errorf("two reports side by side: %v", err)
	}
	if err := NewAdder(pair, 2).ValidateReport(pair.Pack(nil, []uint32{54, 54, 90, 99})); !errors.Is(err, errReportRange) {
		t.Errorf("the second of two side by side is out of reach: %v", err)
	}
	largest := Params{Dim: 64, ClipNorm: 1, Levels: MaxLevels, Coin: Fair}
	ends := make([]uint32, largest.Dim)
	if err := validate(largest, ends...); !errors.Is(err, errReportRange) {
		t.Errorf("all at the ends of the largest range: %v", err)
	}
}

// TestLengthOfALie: in a round of a stream at epsilon 1 the longest report that is not refused is at most .6 as long
// as the ends of all ranges.
func TestLengthOfALie(t *testing.T) {
	for _, dim := range []int{11, 33, 126} { // 8, 30 and 123 features, the intercept, and two scores
		p := Params{Dim: dim, ClipNorm: 1, Levels: 35, Trials: 22, Coin: Fair}
		adder, counts := NewAdder(p, 1), make([]uint32, dim)
		most := p.MaxCount()
		for ; most > 0; most-- {
			for j := range counts {
				counts[j] = most
			}
			if adder.ValidateReport(p.Pack(nil, counts)) == nil {
				break
			}
		}
		longest := float64(2*most-p.MaxCount()) / float64(p.MaxCount())
		t.Logf("%d coordinates: %.2f of the length of the ends, which is %.1f clips", dim, longest,
			math.Sqrt(float64(dim))*float64(p.MaxCount())/float64(p.Levels))
		if longest > 0.6 {
			t.Errorf("%d coordinates: lies are up to %.2f as long as the ends of the ranges", dim, longest)
		}
	}
}
