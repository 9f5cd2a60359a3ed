package report_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/randomizer"
)

// TestUnitsAndBlocksAreMeans checks that the vector of a unit is the mean over the vectors of its rows, cut to
// the radius, and of their scores, and that the vector of a block is the mean over its units. A row that is
// none of the task's contributes zero and counts, and so does a unit of no rows.
func TestUnitsAndBlocksAreMeans(t *testing.T) {
	d := declare(t, "model.clip_norm=0.6")
	c := d.gradient(convex.Logistic{})
	point := []float64{0.5, 1, -2}
	rows := []convex.Example{{Index: []int32{0, 2}, Value: []float64{1, -1}, Label: -1}, {Value: []float64{1, 0},
		Label: 1},
		{Index: []int32{1}, Value: []float64{-0.1}, Label: 1}, {Index: []int32{0, 1}, Value: []float64{1, 1}, Label: 1}}
	for _, radius := range []float64{0, 0.25, 1} {
		c.Radius = radius
		e, err := report.NewExact(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.At(point, nil); err != nil {
			t.Fatal(err)
		}
		norm := 0.6
		if radius > 0 {
			norm *= radius
		}
		unit := func(rows ...convex.Example) []float64 {
			sum := make([]float64, 5)
			for i, x := range rows {
				if i == 1 && len(rows) == 3 {
					continue // the second row has two features of three
				}
				one := make([]float64, 3, 5)
				convex.Logistic{}.Gradient(one, point, x)
				convex.Clip(one, 0.6)
				d.card.Write(one[3:5], convex.Logistic{}.Value(point, x), (x.Dot(point) > 0) == (x.Label > 0))
				for j, v := range one[:5] {
					sum[j] += v / float64(len(rows))
				}
			}
			convex.Clip(sum[:3], norm)
			return sum
		}
		first, last := unit(rows[:3]...), unit(rows[3])
		if got := e.Unit(rows[:3]...); !near(got, first) {
			t.Errorf("radius %v: a unit says %v, want %v", radius, got, first)
		}
		of := block.Block{Rows: rows, Ends: []int{3, 3, 4}}
		want := make([]float64, 5)
		for j := range want {
			want[j] = (first[j] + last[j]) / 3
		}
		if got := e.Mean(of); !near(got, want) {
			t.Errorf("radius %v: a block says %v, want %v", radius, got, want)
		}
		if got := reported(t, c, d.card.Joined(norm), 3, point, nil, of); !near(got, want) {
			t.Errorf("radius %v: a report of a block says %v, want %v", radius, got, want)
		}
		if got := e.Mean(block.Block{}); convex.Norm(got) != 0 {
			t.Errorf("no units say %v", got)
		}
	}
	c.Radius = 0.5
	if c, err := inPractice(t).framed(convex.Logistic{}).Phase(report.Moments, 0); err != nil || c.Radius != 0 {
		t.Errorf("moments are cut to %v of their norm: %v", c.Radius, err)
	}
	for _, radius := range []float64{-0.1, 1.1, math.NaN()} {
		if c.Radius = radius; !refused(c) {
			t.Errorf("radius %v: accepted", radius)
		}
	}
}

func refused(c report.Config) bool {
	_, err := report.NewExact(c)
	return err != nil
}

// TestEveryUnitIsWithinTheNorm checks that the vector of a unit is within the norms that are charged, whatever
// its rows are.
func TestEveryUnitIsWithinTheNorm(t *testing.T) {
	d := declare(t)
	c := d.gradient(convex.Logistic{})
	rapid.Check(t, func(t *rapid.T) {
		c.Radius = rapid.SampledFrom([]float64{0, 1e-9, 0.25, 1}).Draw(t, "radius")
		e, err := report.NewExact(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.At(rapid.SliceOfN(rapid.Float64Range(-5, 5), 3, 3).Draw(t, "point"), nil); err != nil {
			t.Fatal(err)
		}
		number := rapid.OneOf(rapid.Float64Range(-3, 3), rapid.SampledFrom([]float64{0, 1e300, -1e160, math.NaN(),
			math.Inf(1)}))
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) convex.Example {
			return convex.Example{Value: rapid.SliceOfN(number, 3, 3).Draw(t, "x"), Label: rapid.SampledFrom([]float64{-1, 1, 1,
				0}).Draw(t, "label")}
		}), 0, 5).Draw(t, "rows")
		got := e.Unit(rows...)
		if !(convex.Norm(got[:3]) <= c.Norm()) || !(convex.Norm(got[3:]) <= d.card.Norm*(1+1e-12)) {
			t.Fatalf("norms %v and %v", convex.Norm(got[:3]), convex.Norm(got[3:]))
		}
	})
}

// TestOrderOfUnitsDoesNotMatter: the place of a report on the lattice is a sum of integers: units in another
// order give it to the bit.
func TestOrderOfUnitsDoesNotMatter(t *testing.T) {
	c := declare(t).gradient(convex.Logistic{})
	draw := rand.New(rand.NewPCG(1, 2))
	rows := make([]convex.Example, 40)
	for i := range rows {
		rows[i] = convex.Example{Value: []float64{draw.NormFloat64(), draw.NormFloat64(), 0.1}, Label: float64(2*(i%2) - 1)}
	}
	say := func(order []int) []byte {
		m, err := report.New(c, randomizer.Params{Dim: c.Dim(), ClipNorm: 3, Levels: 1 << 26, Trials: 2000, Units: 40,
			Coin: randomizer.Fair}, rand.NewPCG(3, 4))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.At([]float64{1, -1, 2}, nil); err != nil {
			t.Fatal(err)
		}
		permuted := make([]convex.Example, len(rows))
		for i, from := range order {
			permuted[i] = rows[from]
		}
		return m.Report(nil, block.Of(permuted...))
	}
	order := draw.Perm(len(rows))
	sorted := slices.Sorted(slices.Values(order))
	if !bytes.Equal(say(order), say(sorted)) {
		t.Error("two orders of the same units are two reports of one seed")
	}
}

// BenchmarkBlock measures the time of a report about 100,000 rows, as a multiple of a plain loop that adds up
// the same gradients: sparse ones, with 14 of 124 features, and dense ones; and sparse ones in a frame, which
// the plain loop applies too, with scores, which it leaves out. It takes the fastest of all runs of each count:
// the others wait for processors that are busy elsewhere.
func BenchmarkBlock(b *testing.B) {
	const dim, units = 124, 100_000
	loss := convex.Logistic{}
	for name, nonzeros := range map[string]int{"sparse": 14, "dense": dim, "framed": 14} {
		b.Run(name, func(b *testing.B) {
			draw := rand.New(rand.NewPCG(1, 2))
			rows, point := make([]convex.Example, units), make([]float64, dim)
			for j := range point {
				point[j] = draw.NormFloat64() / 10
			}
			for i := range rows {
				x := convex.Example{Label: float64(2*(i%2) - 1)}
				for k := range nonzeros {
					if nonzeros < dim {
						x.Index = append(x.Index, int32(k*dim/nonzeros+draw.IntN(dim/nonzeros)))
					}
					x.Value = append(x.Value, draw.Float64())
				}
				rows[i] = x
			}
			c, frame := report.Config{Features: dim, Loss: loss, ClipNorm: 1}, (*convex.Frame)(nil)
			if name == "framed" {
				c.Practical = &practical.Problem{Features: dim, Loss: convex.Declaration{Name: loss.Name()}}
				c.Scores, c.Score = 2, func(dst, point []float64, row convex.Example) {
					dst[0], dst[1] = loss.Value(point, row)/50, row.Dot(point)/50
				}
				frame = &convex.Frame{Center: make([]float64, dim), Scale: slices.Repeat([]float64{1.5}, dim), Bound: 10, Clip: 0.7}
			}
			m, err := report.New(c, randomizer.Params{Dim: c.Dim(), ClipNorm: 1.2, Levels: 1 << 20, Trials: 8000, Units: units,
				Coin: randomizer.Fair}, nil)
			if err != nil {
				b.Fatal(err)
			}
			if err := m.At(point, frame); err != nil {
				b.Fatal(err)
			}
			work, plain := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			var packed []byte
			sum, one := make([]float64, dim), make([]float64, dim)
			var framed convex.Example
			for b.Loop() {
				begun := time.Now()
				packed = m.Report(packed[:0], block.Of(rows...))
				work = min(work, time.Since(begun))
				begun = time.Now()
				for _, x := range rows {
					if frame != nil {
						frame.Apply(&framed, x)
						x = framed
					}
					loss.Gradient(one, point, x)
					for j, g := range one {
						sum[j] += g
					}
				}
				plain = min(plain, time.Since(begun))
			}
			b.ReportMetric(float64(work.Nanoseconds())/units, "ns/row")
			b.ReportMetric(float64(plain.Nanoseconds())/units, "plain-ns/row")
			b.ReportMetric(work.Seconds()/plain.Seconds(), "loops")
		})
	}
}
