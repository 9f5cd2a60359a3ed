package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// A trial is one division of every silo's rows into four fifths to train on and a fifth to test on.
type trial struct {
	seed  uint64
	silos [][]convex.Example // to train on
	test  []convex.Example   // of all silos
}

// read loads the rows of a file that fit, and the name that the file has for the label of each.
func read(features *task.FeatureMap, path string) (rows []convex.Example, labels []string, err error) {
	in, err := source.OpenNamed(path, features, "")
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	for row, err := range in.All() {
		var x convex.Example
		if err == nil {
			err = features.Map(row, &x)
		}
		if unfit := (*task.RowError)(nil); errors.As(err, &unfit) {
			continue // such as the blank line at the end of one of the files
		} else if err != nil {
			return nil, nil, err
		}
		rows, labels = append(rows, x), append(labels, row.Label)
	}
	return rows, labels, nil
}

// silosOf returns the rows of the silos that a split makes.
func silosOf(split string, count int, rows []convex.Example, labels []string) ([][]convex.Example, error) {
	at, err := sim.Silos(split, count, rows, labels)
	if err != nil {
		return nil, err
	}
	out := make([][]convex.Example, len(at))
	for i, of := range at {
		for _, k := range of {
			out[i] = append(out[i], rows[k])
		}
		if len(of) < 2 {
			return nil, fmt.Errorf("silo %d has %d rows: want some to train on and some to test on", i+1, len(of))
		}
	}
	return out, nil
}

// divide draws the rows of each silo that are trained on, floor(4n/5) of n.
func (s *setting) divide(seed uint64) trial {
	draw := rand.New(sim.Entropy(seed, "experiments: train and test"))
	train, test := make([][]convex.Example, len(s.silos)), make([][]convex.Example, len(s.silos))
	for i, rows := range s.silos {
		for at, k := range draw.Perm(len(rows)) {
			if at < trained(len(rows)) {
				train[i] = append(train[i], rows[k])
			} else {
				test[i] = append(test[i], rows[k])
			}
		}
	}
	if s.columns != nil {
		train, test = s.columns.standardise(s.standard, train, test)
	}
	return trial{seed: seed, silos: train, test: slices.Concat(test...)}
}

// thinned returns the trial with every k-th row to train on, or with all if k is below 2.
func (t trial) thinned(k int) trial {
	if k < 2 {
		return t
	}
	out := trial{seed: t.seed, test: t.test}
	for _, rows := range t.silos {
		var some []convex.Example
		for i := 0; i < len(rows); i += k {
			some = append(some, rows[i])
		}
		out.silos = append(out.silos, some)
	}
	return out
}

func trained(n int) int { return 4 * n / 5 }

// drawnTwice makes of silos of label pairs, of which each has as many rows of a label as others have, those of the
// released script: the pool of a silo is the rows that the first silo with the label has, for both labels, and as
// many as it has are drawn with replacement. So rows are in several silos, several times, and both among those that
// are trained on and those that are tested on.
func drawnTwice(silos [][]convex.Example) [][]convex.Example {
	k := int(math.Sqrt(float64(len(silos))))
	draw := rand.New(sim.Entropy(1, "experiments: with replacement"))
	out := make([][]convex.Example, len(silos))
	for i := range out {
		low, high := silos[i/k*k], silos[i%k] // the first with the one label, and with the other
		pool := slices.Concat(low[:len(low)/2], high[len(high)/2:])
		for range pool {
			out[i] = append(out[i], pool[draw.IntN(len(pool))])
		}
	}
	return out
}
