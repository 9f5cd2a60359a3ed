package randomizer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
)

// sums returns the decoded sums of m users with vector x, repeated, coordinate by coordinate.
func sums(t *testing.T, p Params, m, repeat int, seed uint64, x []float64) [][]float64 {
	t.Helper()
	v, err := NewVectorSum(p, dptest.Source(t, seed))
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]float64, p.Dim)
	totals := make([]uint64, p.Dim)
	var counts []uint32
	var sum []float64
	for range repeat {
		clear(totals)
		for range m {
			if counts, err = v.Encode(counts, x); err != nil {
				t.Fatal(err)
			}
			for j, c := range counts {
				if c > p.MaxCount() {
					t.Fatalf("count %d above %d", c, p.MaxCount())
				}
				totals[j] += uint64(c)
			}
		}
		if sum, err = p.Decode(sum, totals, uint64(m), uint64(m)*uint64(p.Trials)); err != nil {
			t.Fatal(err)
		}
		for j, s := range sum {
			out[j] = append(out[j], s)
		}
	}
	return out
}

// Theorem 3.2 and Lemma 3.1 of ICLR 2022 at m = 200, d = 7, g = 12, b = 9, p = 1/2: the estimate is unbiased, the
// privacy variance of a coordinate of the sum is (2L/12)^2 200 9/4 = 12.5 L^2, and rounding adds m f(1-f) steps^2 for
// the known fraction f, at most 1.389 L^2.
func TestTheorem32_UnbiasedWithKnownVariance(t *testing.T) {
	const m, repeat = 200, 10000
	for i, p := range []Params{
		{Dim: 7, ClipNorm: 1, Levels: 12, Trials: 9, Coin: Fair},
		{Dim: 7, ClipNorm: 1, Levels: 12, Trials: 60, Coin: Fair},
		{Dim: 7, ClipNorm: 1, Levels: 13, Trials: 9, Coin: Fair / 3},
		{Dim: 7, ClipNorm: 1, Levels: 12, Trials: 0, Coin: Fair},
	} {
		t.Run(fmt.Sprintf("g=%d,b=%d,p=%.3f", p.Levels, p.Trials, p.Coin.Float()), func(t *testing.T) {
			x := []float64{0.5, -0.5, 0.3, 0, -0.01, 0.2, 0.1}
			step := 2 * p.ClipNorm / float64(p.Levels)
			for j, s := range sums(t, p, m, repeat, uint64(i), x) {
				at := (x[j] + p.ClipNorm) / step
				f := at - math.Floor(at)
				rounding := step * step * m * f * (1 - f)
				v := p.Variance(m, m*uint64(p.Trials))
				if rounding > v.RoundingMax*(1+1e-12) {
					t.Fatalf("rounding variance %v above its bound %v", rounding, v.RoundingMax)
				}
				name := fmt.Sprintf("coordinate %d", j)
				// Snapping moves a user by at most 2^-24 of a step; the allowed radius is far wider.
				dptest.Mean(t, name, s, dptest.Moment{Mean: m * x[j], Variance: v.Privacy + rounding, Term: step}, dptest.Alpha)
				if v.Privacy > 0 {
					dptest.Variance(t, name, s, m*x[j], v.Privacy+rounding, dptest.Alpha)
				}
			}
		})
	}
}

// Clipping: a long vector counts as its direction times L.
func TestEncodeClips(t *testing.T) {
	p := Params{Dim: 2, ClipNorm: 2, Levels: 10, Trials: 4, Coin: Fair}
	for k, x := range [][]float64{{30, -40}, {3e200, -4e200}, {3e307, -4e307}} {
		for j, s := range sums(t, p, 50, 400, uint64(k), x) {
			v := p.Variance(50, 200)
			m := dptest.Moment{Mean: 50 * []float64{1.2, -1.6}[j], Variance: v.Privacy + v.RoundingMax, Term: 0.4}
			dptest.Mean(t, fmt.Sprint(j), s, m, dptest.Alpha)
		}
	}
}

// The count of one user, against the exact convolution of rounding and binomial noise.
func TestEncodeLaw(t *testing.T) {
	for _, p := range []Params{
		{Dim: 2, ClipNorm: 1, Levels: 4, Trials: 6, Coin: Fair},
		{Dim: 2, ClipNorm: 1, Levels: 4, Trials: 45, Coin: Fair},
		{Dim: 2, ClipNorm: 1, Levels: 4, Trials: 6, Coin: Fair / 2},
		{Dim: 2, ClipNorm: 1, Levels: 4, Trials: 0, Coin: Fair / 2},
	} {
		v, err := NewVectorSum(p, dptest.Source(t, 77))
		if err != nil {
			t.Fatal(err)
		}
		counts := [2][]uint64{make([]uint64, p.MaxCount()+1), make([]uint64, p.MaxCount()+1)}
		var c []uint32
		for range 40000 {
			if c, err = v.Encode(c, []float64{0.15, -0.6}); err != nil {
				t.Fatal(err)
			}
			counts[0][c[0]]++
			counts[1][c[1]]++
		}
		noise := dptest.BinomialProbabilities(int(p.Trials), p.Coin.Float())
		for j, at := range []float64{2.3, 0.8} {
			want := make([]float64, p.MaxCount()+1)
			low := int(at)
			for k, q := range noise {
				want[low+k] += q * (1 - at + float64(low))
				want[low+k+1] += q * (at - float64(low))
			}
			dptest.ChiSquare(t, fmt.Sprintf("b=%d p=%v coordinate %d", p.Trials, p.Coin, j), counts[j], want, dptest.Alpha)
		}
	}
}

func TestEncodeIsDeterministicGivenTheSource(t *testing.T) {
	p := Params{Dim: 5, ClipNorm: 1, Levels: 7, Trials: 70, Coin: Fair / 3}
	x := []float64{1, -2, 3, -4, 5}
	var first []uint32
	for range 3 {
		v, err := NewVectorSum(p, dptest.Source(t, 3))
		if err != nil {
			t.Fatal(err)
		}
		got, err := v.Encode(nil, x)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !slices.Equal(got, first) {
			t.Errorf("same source, counts %v and %v", first, got)
		}
		first = got
	}
}

// A vector that is not finite sends what the zero vector sends.
func TestEncodeReplacesNonFinite(t *testing.T) {
	p := Params{Dim: 3, ClipNorm: 1, Levels: 4, Trials: 5, Coin: Fair}
	encode := func(x []float64) ([]uint32, uint64) {
		v, err := NewVectorSum(p, dptest.Source(t, 9))
		if err != nil {
			t.Fatal(err)
		}
		counts, err := v.Encode(nil, x)
		if err != nil {
			t.Fatal(err)
		}
		return counts, v.replaced
	}
	want, _ := encode(make([]float64, 3))
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		got, replaced := encode([]float64{1, bad, -1})
		if !slices.Equal(got, want) || replaced != 1 {
			t.Errorf("%v: counts %v with %d replaced, want %v with 1", bad, got, replaced, want)
		}
	}
}

func TestEncodeLeavesNothingBehind(t *testing.T) {
	p := Params{Dim: 3, ClipNorm: 1, Levels: 4, Trials: 5, Coin: Fair}
	v, err := NewVectorSum(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Encode(nil, []float64{0.1, 0.2, 0.3}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(v.place, make([]int64, 3)) {
		t.Error("the position stays in the scratch memory")
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%d", "%x"} {
		if text := fmt.Sprintf(format+format, v, *v); text != strings.Repeat("vector sum of 3 coordinates", 2) {
			t.Errorf("%s shows the generator or the sum: %s", format, text)
		}
	}
	for _, n := range []int{0, 2, 4} {
		if _, err := v.Encode(nil, make([]float64, n)); err == nil {
			t.Errorf("a vector of %d coordinates was encoded for Dim = 3", n)
		}
	}
}

func TestEncodeDoesNotAllocate(t *testing.T) {
	for _, trials := range []uint32{0, 9, 64, 1000} {
		v, err := NewVectorSum(Params{Dim: 50, ClipNorm: 1, Levels: 4, Trials: trials, Coin: Fair}, nil)
		if err != nil {
			t.Fatal(err)
		}
		x, dst := make([]float64, 50), make([]uint32, 50)
		if n := testing.AllocsPerRun(100, func() { dst, _ = v.Encode(dst, x) }); n != 0 {
			t.Errorf("b = %d: %v allocations", trials, n)
		}
	}
}
