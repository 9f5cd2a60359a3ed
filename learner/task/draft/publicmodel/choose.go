package publicmodel

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
)

// A Ridge is a linear model that may be chosen: its coordinates, and the factor of half the squared norm of its weights
// beside the sum of the losses.
type Ridge struct {
	Design *Design
	Ridge  float64
}

// A Blend is (1-Share) times boosted trees and Share times a linear model.
type Blend struct {
	Trees  *trees // nil without ways of boosting
	Linear *linear
	How    Boosting // of Trees
	Chosen int      // the place of the linear model's Ridge
	Share  float64

	// Scores are of each row by the blend of the other folds: out of fold.
	Scores []float64
	// Halved are of each row by the same blend of the half of the rows that it is not in.
	Halved []float64
}

// Lacking returns what the mean loss would fall by if there were any number of rows, and the standard error of that, if
// the loss is a constant and a term in proportion to 1/rows: by the difference of models of half the rows and of all
// but a fold.
func (b *Blend) Lacking(l *Labels) (mean, deviation float64) {
	const at = float64(folds-1) / folds
	k := l.Outputs
	differences := make([]float64, len(l.Y))
	for i := range differences {
		differences[i] = (l.loss(b.Halved[i*k:(i+1)*k], i) - l.loss(b.Scores[i*k:(i+1)*k], i)) / (1/0.5 - 1/at)
	}
	return meanOf(differences)
}

// folds is the number of parts that the rows are split into.
const folds = 4

// boostings are the candidates.
var boostings = []Boosting{{8, 120, 0.06}, {8, 400, 0.06}, {31, 100, 0.1}, {4, 150, 0.1}}

// Candidates returns the ways of boosting whose trees have at most so many leaves together, of each output. Those that
// differ in the number of trees alone are next to each other, the larger number last.
func Candidates(leaves int) []Boosting {
	return slices.DeleteFunc(slices.Clone(boostings), func(b Boosting) bool { return b.Leaves*b.Trees > leaves })
}

// Train chooses the blend that has the least loss out of fold: the best of the ways of boosting, then the linear model
// and its share in tenths. Without ways there are no trees, and the table may be nil. No leaf has fewer than leaf rows.
func Train(t *Table, l *Labels, boostings []Boosting, linear []Ridge, leaf int) *Blend {
	n := len(l.Y)
	split := deal(n)
	trees := make([][]float64, len(boostings))
	lines := make([][]float64, len(linear))
	var jobs []func()
	for i := range boostings {
		trees[i] = make([]float64, n*l.Outputs)
	}
	for i, how := range boostings {
		if i+1 < len(boostings) && boostings[i+1].begins(how) {
			continue // the next one comes by
		}
		for f := range folds {
			jobs = append(jobs, func() { boostFold(t, l, split, f, boostings, how, leaf, trees) })
		}
	}
	for i, r := range linear {
		lines[i] = make([]float64, n*l.Outputs)
		for f := range folds {
			jobs = append(jobs, func() {
				m := fitLinear(r.Design, l, split.others(f), r.Ridge)
				for _, row := range split.rows(f) {
					m.scores(lines[i][int(row)*l.Outputs:][:l.Outputs], r.Design, int(row))
				}
			})
		}
	}
	inParallel(jobs)
	return choose(t, l, boostings, linear, leaf, trees, lines)
}

// begins reports whether the trees of another way are the first ones of this.
func (b Boosting) begins(other Boosting) bool {
	return b.Leaves == other.Leaves && b.Rate == other.Rate
}

// boostFold trains one candidate, and those that are its beginning, without a fold, and scores the fold's rows.
func boostFold(t *Table, l *Labels, split split4, f int, boostings []Boosting, how Boosting, leaf int,
	out [][]float64) {
	boost(t, l, split.others(f), how, leaf, func(step int, scores []float64) {
		for i, b := range boostings {
			if b.begins(how) && b.Trees == step+1 {
				for _, row := range split.rows(f) {
					copy(out[i][int(row)*l.Outputs:][:l.Outputs], scores[int(row)*l.Outputs:])
				}
			}
		}
	})
}

// choose picks the best and trains it on all rows.
func choose(t *Table, l *Labels, boostings []Boosting, linear []Ridge, leaf int, trees, lines [][]float64) *Blend {
	all := allRows(len(l.Y))
	b := &Blend{Share: 1}
	best := -1
	var grown []float64
	var least float64
	for i, scores := range trees {
		if mean, _ := l.Mean(scores); best < 0 || mean < least {
			best, least, grown = i, mean, scores
		}
	}
	first := true
	for i := range linear {
		for tenth := range 11 {
			if best < 0 && tenth < 10 {
				continue
			}
			share := float64(tenth) / 10
			scores := blended(grown, lines[i], share)
			if mean, _ := l.Mean(scores); first || mean < least {
				first, least = false, mean
				b.Share, b.Scores, b.Chosen = share, scores, i
			}
		}
	}
	r := linear[b.Chosen]
	var jobs []func()
	if best >= 0 {
		b.How = boostings[best]
		jobs = append(jobs, func() { b.Trees = boost(t, l, all, b.How, leaf, nil) })
	}
	jobs = append(jobs, func() { b.Linear = fitLinear(r.Design, l, all, r.Ridge) })
	b.Halved = make([]float64, len(all)*l.Outputs)
	halves := deal(len(all))
	for i := range halves {
		halves[i] %= 2
	}
	for f := range 2 {
		jobs = append(jobs, func() { b.half(t, l, r, leaf, halves.others(f), halves.rows(f)) })
	}
	inParallel(jobs)
	return b
}

// half trains the blend on some rows and scores others.
func (b *Blend) half(t *Table, l *Labels, r Ridge, leaf int, on, rows []int32) {
	var grown []float64
	if b.How.Trees > 0 {
		boost(t, l, on, b.How, leaf, func(_ int, scores []float64) { grown = scores })
	}
	line := fitLinear(r.Design, l, on, r.Ridge)
	s := make([]float64, l.Outputs)
	for _, row := range rows {
		line.scores(s, r.Design, int(row))
		at := int(row) * l.Outputs
		if grown == nil {
			copy(b.Halved[at:], s)
		} else {
			copy(b.Halved[at:], blended(grown[at:at+l.Outputs], s, b.Share))
		}
	}
}

// blended returns (1-share) a + share b.
func blended(a, b []float64, share float64) []float64 {
	out := make([]float64, len(b))
	for i := range out {
		out[i] = share * b[i]
		if a != nil {
			out[i] += (1 - share) * a[i]
		}
	}
	return out
}

// A split4 holds the fold of each row.
type split4 []uint8

// deal deals rows to folds of equal size at random.
func deal(n int) split4 {
	out := make(split4, n)
	for i, r := range rand.New(rand.NewPCG(foldSeed, 0)).Perm(n) {
		out[r] = uint8(i % folds)
	}
	return out
}

func (s split4) rows(f int) (out []int32) {
	for i, fold := range s {
		if int(fold) == f {
			out = append(out, int32(i))
		}
	}
	return out
}

func (s split4) others(f int) (out []int32) {
	for i, fold := range s {
		if int(fold) != f {
			out = append(out, int32(i))
		}
	}
	return out
}

func allRows(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

// inParallel runs jobs, which write to places of their own, on all processors.
func inParallel(jobs []func()) {
	var group sync.WaitGroup
	next := make(chan func())
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for job := range next {
				job()
			}
		})
	}
	for _, job := range jobs {
		next <- job
	}
	close(next)
	group.Wait()
}
