package publicmodel

import (
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/panlearn/panlearn/internal/test/longtest"
)

// sample draws rows of three numbers and an indicator whose label depends on a product of signs.
func sample(kind kind, n int) (columns [][]float64, l *Labels) {
	r := rand.New(rand.NewPCG(11, uint64(n)))
	columns = make([][]float64, 4)
	l = &Labels{Kind: kind, Outputs: 1}
	if kind == Many {
		l.Outputs = 3
	}
	for range n {
		a, b, c, d := r.NormFloat64(), r.NormFloat64(), float64(r.IntN(5)), float64(r.IntN(2))
		for j, v := range [...]float64{a, b, c, d} {
			columns[j] = append(columns[j], v)
		}
		score := 2*a*b/(1+math.Abs(a*b))*2 + d
		switch kind {
		case Numbers:
			l.Y = append(l.Y, score+0.1*r.NormFloat64())
		case Two:
			l.Y = append(l.Y, indicator(r.Float64() < sigmoid(2*score)))
		case Many:
			l.Y = append(l.Y, float64(min(int(math.Abs(score)), 2)))
		}
	}
	return columns, l
}

func design(columns [][]float64) *Design {
	rows := make([][]float64, len(columns[0]))
	for i := range rows {
		for _, c := range columns {
			rows[i] = append(rows[i], c[i])
		}
	}
	return NewDesign(rows, []int{0, 1, 2, 3}, []float64{1, 1, 1, 1})
}

// TestTreeSplitsWhereTheLossFallsMost: the first question is the best of all, found by trying every one.
func TestTreeSplitsWhereTheLossFallsMost(t *testing.T) {
	for _, kind := range []kind{Numbers, Two} {
		columns, l := sample(kind, 100)
		table := NewTable(columns)
		g, h := make([]float64, 100), make([]float64, 100)
		for i := range g {
			l.slopes(g[i:i+1], h[i:i+1], []float64{0.3}, i)
		}
		w := &grower{table: table, growth: growth{leaves: 2, rows: 10, ridge: 1}}
		tree := w.grow(allRows(100), g, h)
		gain := func(input int, threshold float32) float64 {
			var side [2][3]float64
			for i, x := range columns[input] {
				s := &side[int(indicator(float32(x) > threshold))]
				s[0] += g[i]
				s[1] += h[i]
				s[2]++
			}
			if side[0][2] < 10 || side[1][2] < 10 {
				return 0
			}
			return side[0][0]*side[0][0]/(side[0][1]+1) + side[1][0]*side[1][0]/(side[1][1]+1)
		}
		best := 0.0
		for j, column := range columns {
			for _, x := range column {
				best = max(best, gain(j, float32(x)))
			}
		}
		if got := gain(int(tree.Input[0]), tree.Threshold[0]); math.Abs(got-best) > 1e-9*best {
			t.Errorf("kind %d: the first question gains %v, the best %v", kind, got, best)
		}
	}
}

// TestLeavesHoldRows: no leaf of boosted trees or of a forest has fewer different rows than asked, and thresholds
// lead where bins do.
func TestLeavesHoldRows(t *testing.T) {
	columns, l := sample(Two, 600)
	table := NewTable(columns)
	var trees []*Tree
	for _, step := range boost(table, l, allRows(600), Boosting{8, 20, 0.1}, 17, nil).Steps {
		trees = append(trees, step...)
	}
	boosted := len(trees)
	trees = append(trees, Forest(table, l, 10, 16, 17)...)
	for i, tree := range trees {
		count := map[int]int{}
		for row := range 600 {
			leaf := tree.leaf(table, row)
			count[leaf]++
			at := 0
			for int(tree.Left[at]) != at {
				if float32(columns[tree.Input[at]][row]) <= tree.Threshold[at] {
					at = int(tree.Left[at])
				} else {
					at = int(tree.Right[at])
				}
			}
			if at != leaf {
				t.Fatalf("tree %d, row %d: leaf %d by thresholds, %d by bins", i, row, at, leaf)
			}
		}
		leaves, most := tree.leaves(), 8
		if i >= boosted {
			most = 16
		}
		if len(leaves) < 2 || len(leaves) > most {
			t.Errorf("tree %d: %d leaves", i, len(leaves))
		}
		for _, leaf := range leaves {
			if count[leaf] < 17 {
				t.Errorf("tree %d: a leaf of %d rows", i, count[leaf])
			}
		}
	}
}

// TestFitLinearIsTheRidge: of numbers the fit is the solution of the normal equations, and of classes no small step
// lowers the loss.
func TestFitLinearIsTheRidge(t *testing.T) {
	columns, l := sample(Numbers, 200)
	const ridge = 3
	m := fitLinear(design(columns), l, allRows(200), ridge)
	a, b := mat.NewSymDense(5, nil), mat.NewVecDense(5, nil)
	for i := range 200 {
		x := mat.NewVecDense(5, []float64{columns[0][i], columns[1][i], columns[2][i], columns[3][i], 1})
		a.SymRankOne(a, 1, x)
		b.AddScaledVec(b, l.Y[i], x)
	}
	for j := range 4 {
		a.SetSym(j, j, a.At(j, j)+ridge)
	}
	var exact mat.VecDense
	if err := exact.SolveVec(a, b); err != nil {
		t.Fatal(err)
	}
	for j, got := range append(m.Weights[0][:4:4], m.Bias[0]) {
		if math.Abs(got-exact.AtVec(j)) > 1e-4 {
			t.Errorf("weight %d: %v, exactly %v", j, got, exact.AtVec(j))
		}
	}
	for _, kind := range []kind{Two, Many} {
		columns, l := sample(kind, 200)
		d := design(columns)
		m := fitLinear(d, l, allRows(200), ridge)
		whole := func() float64 {
			s, sum := make([]float64, l.Outputs), 0.0
			for i := range l.Y {
				m.scores(s, d, i)
				sum += l.loss(s, i)
			}
			for _, line := range m.Weights {
				for _, w := range line {
					sum += ridge / 2.0 * w * w
				}
			}
			return sum
		}
		least := whole()
		for k := range m.Weights {
			for j := range m.Weights[k] {
				for _, step := range [...]float64{-0.02, 0.02} {
					m.Weights[k][j] += step
					if whole() < least {
						t.Errorf("kind %d: a step of weight %d,%d lowers the loss", kind, k, j)
					}
					m.Weights[k][j] -= step
				}
			}
		}
	}
}

// TestTrainBeatsTheBaseAndRepeats: out of fold the blend is better than the best constant, and than the linear model
// where labels depend on a product; one processor makes the same as many.
func TestTrainBeatsTheBaseAndRepeats(t *testing.T) {
	kinds := []kind{Many, Two, Numbers}
	for _, kind := range kinds[:longtest.Seeds(t, len(kinds))] {
		columns, l := sample(kind, 800)
		train := func() *Blend {
			return Train(NewTable(columns), l, Candidates(3200), []Ridge{{design(columns), 30}, {design(columns), 3}}, 15)
		}
		b := train()
		mean, _ := l.Mean(b.Scores)
		base := make([]float64, 0, 800*l.Outputs)
		for range 800 {
			base = append(base, l.base(allRows(800))...)
		}
		constant, _ := l.Mean(base)
		alone := Train(nil, l, nil, []Ridge{{design(columns), 30}}, 15)
		line, _ := l.Mean(alone.Scores)
		if mean > 0.9*constant || mean > 0.9*line || b.Share > 0.5 || b.Trees == nil {
			t.Errorf("kind %d: loss %.4f with share %v; constant %.4f, linear %.4f", kind, mean, b.Share, constant, line)
		}
		before := runtime.GOMAXPROCS(1)
		again := train()
		runtime.GOMAXPROCS(before)
		if !reflect.DeepEqual(b, again) {
			t.Errorf("kind %d: one processor made another model", kind)
		}
		if lacking, deviation := b.Lacking(l); alone.Trees != nil || alone.Share != 1 || lacking < deviation {
			t.Errorf("kind %d: a linear share of %v without trees; more rows would lower the loss by %v +- %v", kind,
				alone.Share, lacking, deviation)
		}
	}
}

// TestWhiten: directions have mean 0 and are uncorrelated in the weights, with variance 1 where the eigenvalue is
// large, from many rows and from few.
func TestWhiten(t *testing.T) {
	for _, size := range [...][2]int{{300, 20}, {30, 80}} {
		r := rand.New(rand.NewPCG(3, 3))
		rows, weights := make([][]float64, size[0]), make([]float64, size[0])
		total := 0.0
		for i := range rows {
			common := r.NormFloat64()
			for range size[1] {
				rows[i] = append(rows[i], 5+r.NormFloat64()+common)
			}
			weights[i] = r.Float64()
			total += weights[i]
		}
		d := Whiten(rows, weights, 8)
		if len(d.Matrix) != 8 {
			t.Fatalf("%d directions", len(d.Matrix))
		}
		z := make([][]float64, len(rows))
		for i, row := range rows {
			for k, line := range d.Matrix {
				sum := d.Bias[k]
				for j, v := range row {
					sum += line[j] * v
				}
				z[i] = append(z[i], sum)
			}
		}
		for a := range 8 {
			mean, cross := 0.0, make([]float64, 8)
			for i := range z {
				mean += weights[i] / total * z[i][a]
				for b := range 8 {
					cross[b] += weights[i] / total * z[i][a] * z[i][b]
				}
			}
			if math.Abs(mean) > 1e-9 {
				t.Errorf("%v: direction %d has mean %g", size, a, mean)
			}
			for b, v := range cross {
				if want := indicator(a == b); math.Abs(v-want) > 0.01 {
					t.Errorf("%v: directions %d and %d have product %g", size, a, b, v)
				}
			}
		}
	}
}

// leaves returns the nodes that are leaves, in order.
func (t *Tree) leaves() (out []int) {
	for i := range t.Left {
		if int(t.Left[i]) == i {
			out = append(out, i)
		}
	}
	return out
}
