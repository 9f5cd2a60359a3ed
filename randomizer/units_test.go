package randomizer

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/dptest"
)

// distance2 returns the squared distance of two places, in steps.
func distance2(a, b []int64) *big.Int {
	sum := new(big.Int)
	for j := range a {
		d := new(big.Int).Sub(big.NewInt(a[j]), big.NewInt(b[j]))
		sum.Add(sum, d.Mul(d, d))
	}
	return sum
}

// TestUnitsStayInTheirBalls: whatever floats the units hold, the place of a report lies in the lattice's ball, and
// replacing one unit moves it by at most g/K levels: 2^24 g/K steps, compared without a division.
func TestUnitsStayInTheirBalls(t *testing.T) {
	hostile := rapid.OneOf(
		rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), rapid.Float64Range(-4, 4),
		rapid.SampledFrom([]float64{0, 1, -1, 1 + 0x1p-52, math.SmallestNonzeroFloat64, math.MaxFloat64, 1.4e154, -1e-310,
			math.NaN(), math.Inf(1), math.Inf(-1)}))
	rapid.Check(t, func(rt *rapid.T) {
		dim, units := rapid.IntRange(1, 5).Draw(rt, "d"), rapid.IntRange(1, 9).Draw(rt, "K")
		p := drawParams(rt, dim)
		p.Units = uint64(units)
		if rapid.Bool().Draw(rt, "few steps") {
			p.Levels = 1
			p.Units = rapid.Uint64Range(uint64(units), radius(1)).Draw(rt, "units of the report")
		}
		v, err := NewVectorSum(p, dptest.Source(t, 1))
		if err != nil {
			rt.Fatal(err)
		}
		vector := rapid.SliceOfN(hostile, dim, dim)
		var others [][]float64
		for range units - 1 {
			others = append(others, vector.Draw(rt, "other"))
		}
		place := func(x []float64) []int64 {
			for _, o := range append(slices.Clone(others), x) {
				if err := v.Add(o); err != nil {
					rt.Fatal(err)
				}
			}
			at := slices.Clone(v.place)
			v.Draw(nil)
			return at
		}
		one := vector.Draw(rt, "one")
		a := place(one)
		for _, x := range [][]float64{vector.Draw(rt, "another"), negated(one), make([]float64, dim)} {
			moved := distance2(a, place(x)) // against (2^24 g/K)^2
			moved.Mul(moved, new(big.Int).Mul(new(big.Int).SetUint64(p.Units), new(big.Int).SetUint64(p.Units)))
			most := new(big.Int).Lsh(big.NewInt(int64(p.Levels)), CoinBits)
			if moved.Cmp(most.Mul(most, most)) > 0 {
				rt.Fatalf("%+v: replacing one unit moves the place by more than g/K levels", p)
			}
		}
		if !inBall(p.Levels, a) {
			rt.Fatalf("%+v: the units' sum is outside the lattice's ball", p)
		}
	})
}

func negated(x []float64) []float64 {
	out := slices.Clone(x)
	for j := range out {
		out[j] = -out[j]
	}
	return out
}

func TestAddRefuses(t *testing.T) {
	v, err := NewVectorSum(Params{Dim: 2, ClipNorm: 1, Levels: 4, Trials: 5, Units: 2, Coin: Fair}, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := []float64{0.5, 0}
	for report := range 2 {
		if v.Add(x[:1]) == nil {
			t.Error("a unit of one coordinate was added for Dim = 2")
		}
		if err := errorsOf(v.Add(x), v.Add(x)); err != nil {
			t.Fatalf("report %d: %v", report, err)
		}
		before := slices.Clone(v.place)
		if v.Add(x) == nil || !slices.Equal(before, v.place) {
			t.Error("a third unit of two was added")
		}
		if v.Draw(nil); !slices.Equal(v.place, make([]int64, 2)) || !slices.Equal(v.unit, make([]int64, 2)) {
			t.Error("units stay in the scratch memory")
		}
	}
	if _, err := v.Encode(nil, x); err == nil {
		t.Error("one unit was encoded as a report of two")
	}
}

// A vector that is given by its nonzeros has the place of the whole one, whatever they are, and coordinates out of
// order are refused.
func TestAddAtIsAdd(t *testing.T) {
	number := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.SampledFrom([]float64{0, 1, -1e200, 1e-310, math.MaxFloat64,
		math.NaN(), math.Inf(1)}))
	rapid.Check(t, func(rt *rapid.T) {
		p := drawParams(rt, rapid.IntRange(1, 9).Draw(rt, "d"))
		p.Units = rapid.Uint64Range(1, 3).Draw(rt, "K")
		whole, err := NewVectorSum(p, dptest.Source(t, 1))
		if err != nil {
			rt.Fatal(err)
		}
		few, err := NewVectorSum(p, dptest.Source(t, 1))
		if err != nil {
			rt.Fatal(err)
		}
		for range p.Units {
			var index []int32
			var values []float64
			x := make([]float64, p.Dim)
			for j := range x {
				if rapid.Bool().Draw(rt, "there") {
					x[j] = p.ClipNorm * number.Draw(rt, "x")
					index, values = append(index, int32(j)), append(values, x[j])
				}
			}
			if err := errorsOf(whole.Add(x), few.AddAt(index, values)); err != nil {
				rt.Fatal(err)
			}
		}
		if !slices.Equal(whole.place, few.place) || whole.replaced != few.replaced {
			rt.Fatalf("%+v: the nonzeros lie elsewhere than the vector", p)
		}
	})
	v, err := NewVectorSum(Params{Dim: 3, ClipNorm: 1, Levels: 4, Trials: 5, Coin: Fair}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range [][]int32{{0, 0}, {1, 0}, {-1, 0}, {0, 3}, {0}} {
		if v.AddAt(index, []float64{0.5, 0.5}) == nil || !slices.Equal(v.place, make([]int64, 3)) {
			t.Errorf("coordinates %v of 3 for two values: accepted", index)
		}
	}
	if err := v.AddAt(nil, nil); err != nil || v.AddAt(nil, nil) == nil {
		t.Errorf("one unit: %v, and a second one of one is accepted", err)
	}
	v.Draw(nil)
	if err := v.AddAt([]int32{2}, []float64{1}); err != nil || v.Draw(nil) == nil ||
		!slices.Equal(v.few, make([]int64, len(v.few))) {
		t.Errorf("%v: a unit stays in the scratch memory", err)
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestUnitsAndWindowValidate(t *testing.T) {
	good := Params{Dim: 3, ClipNorm: 1, Levels: 4, Trials: 6, Units: 5, Window: 20, Coin: Fair}
	if err := good.Validate(); err != nil || good.MaxCount() != 24 || good.countBits() != 5 {
		t.Errorf("%v, counts to %d of %d bits; want 24 and 5", err, good.MaxCount(), good.countBits())
	}
	for name, breakIt := range map[string]func(*Params){
		"no step is left for a unit": func(p *Params) { p.Units = 4<<23 + 1 },
		"units without end":          func(p *Params) { p.Units = math.MaxUint64 },
		"odd window":                 func(p *Params) { p.Window = 21 },
		"wide window":                func(p *Params) { p.Window = MaxTrials + 2 },
		"odd trials under a window":  func(p *Params) { p.Trials = 7 },
		"floors under a window":      func(p *Params) { p.FloorTrials = 2 },
		"biased coin under a window": func(p *Params) { p.Coin = Fair / 2 },
	} {
		p := good
		breakIt(&p)
		if p.Validate() == nil {
			t.Errorf("%s: %+v is accepted", name, p)
		}
	}
	if p := (Params{Dim: 1, ClipNorm: 1, Levels: 1, Units: 1 << 23, Coin: Fair}); p.Validate() != nil {
		t.Error("one step for a unit is refused")
	}
	if got := good.NoiseTrials(3, 10); got != 18 {
		t.Errorf("%d trials of 3 reports under a window, want their own 18: nobody's noise is topped up", got)
	}
	if most, err := good.MaxTotal(3, 18); err != nil || most != 72 {
		t.Errorf("MaxTotal = %d, %v; want 72", most, err)
	}
	if most, err := good.MaxTotal(1, 1<<63); err == nil {
		t.Errorf("2^63 trials with a largest total of %d", most)
	}
}

// TestDecodeOfUnits checks one total of reports about different numbers of units, with different trials: the estimate
// is the sum of the reports' means without bias, with the variance of the trials that are in it.
func TestDecodeOfUnits(t *testing.T) {
	const repeat = 6000
	for _, c := range []struct {
		plan    Params
		trials  []uint32
		units   []int
		clamped bool
	}{
		{plan: Params{Dim: 3, ClipNorm: 2, Levels: 12, Trials: 70, Units: 5, Window: 140, Coin: Fair},
			trials: []uint32{70, 20, 100}, units: []int{5, 9, 3}},
		{plan: Params{Dim: 3, ClipNorm: 2, Levels: 12, Trials: 9, Units: 50, Coin: Fair / 3}, trials: []uint32{9, 9, 9},
			units: []int{50, 50, 7}},
		{plan: Params{Dim: 3, ClipNorm: 2, Levels: 12, Trials: 30, Window: 80, Coin: Fair}, trials: []uint32{30, 30, 30},
			units: []int{1, 1, 1}},
	} {
		var reports []*VectorSum
		var noise uint64
		want := make([]float64, 3)
		for i, trials := range c.trials {
			p := c.plan
			p.Trials = trials
			p.Units = uint64(c.units[i])
			if i == 2 && c.plan.Window == 0 {
				p.Units = c.plan.Units // the units that are missing count as zero vectors
			}
			v, err := NewVectorSum(p, dptest.Source(t, uint64(i)))
			if err != nil {
				t.Fatal(err)
			}
			reports = append(reports, v)
			noise += uint64(trials)
			for k := range c.units[i] {
				for j, x := range unitVector(k) {
					want[j] += x / float64(p.Units)
				}
			}
		}
		got := make([][]float64, 3)
		for range repeat {
			totals := make([]uint64, 3)
			for i, v := range reports {
				for k := range c.units[i] {
					if err := v.Add(unitVector(k)); err != nil {
						t.Fatal(err)
					}
				}
				for j, n := range v.Draw(nil) {
					totals[j] += uint64(n)
				}
			}
			sum, err := c.plan.Decode(nil, totals, 3, noise)
			if err != nil {
				t.Fatal(err)
			}
			for j, s := range sum {
				got[j] = append(got[j], s)
			}
		}
		v := c.plan.Variance(3, noise)
		for j, s := range got {
			dptest.Mean(t, fmt.Sprintf("%+v coordinate %d", c.plan, j), s,
				dptest.Moment{Mean: want[j], Variance: v.Privacy + v.RoundingMax, Term: 2 * c.plan.ClipNorm / 12}, dptest.Alpha)
			if excess := variance(s, want[j]) / (v.Privacy + v.RoundingMax/2); math.Abs(excess-1) > 0.12 {
				// of 6,000, a sixth standard error
				t.Errorf("%+v coordinate %d: variance %v times the stated one", c.plan, j, excess)
			}
		}
	}
}

func unitVector(k int) []float64 { return []float64{0.3 * float64(k%4), -0.9, 0.1} }

func variance(s []float64, mean float64) float64 {
	var sum float64
	for _, x := range s {
		sum += (x - mean) * (x - mean)
	}
	return sum / float64(len(s))
}

// What falls outside the window is moved to its ends, and nothing else is.
func TestWindowClamps(t *testing.T) {
	p := Params{Dim: 1, ClipNorm: 1, Levels: 2, Trials: 8, Window: 2, Coin: Fair}
	v, err := NewVectorSum(p, dptest.Source(t, 5))
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]uint64, p.MaxCount()+1)
	for range 40000 {
		c, err := v.Encode(nil, []float64{0}) // at level 1: 1 + Bin(8) - 4 + 1
		if err != nil {
			t.Fatal(err)
		}
		counts[c[0]]++
		if got, err := p.Unpack(nil, p.Pack(nil, c)); err != nil || got[0] != c[0] {
			t.Fatalf("packed %v, unpacked %v, %v", c, got, err)
		}
	}
	noise := dptest.BinomialProbabilities(8, 0.5)
	want := []float64{noise[0] + noise[1] + noise[2], noise[3], noise[4], noise[5], noise[6] + noise[7] + noise[8]}
	dptest.ChiSquare(t, "window", counts, want, dptest.Alpha)
}

// The least window for some trials has room for them, and a smaller one has not.
func TestWindowHasRoom(t *testing.T) {
	for _, trials := range []uint64{2, 10, 64, 8248, 1 << 20, 1 << 28} {
		w := uint32(WindowOf(trials, 1))
		if room := (Params{Window: w}).Room(); w%2 != 0 || room < trials {
			t.Errorf("a window of %d has room for %d trials, want %d", w, room, trials)
		}
		if room := (Params{Window: w - 2}).Room(); room >= trials {
			t.Errorf("a window of %d has room for %d trials: want one that is too small for %d", w-2, room, trials)
		}
	}
}
