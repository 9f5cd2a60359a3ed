package main

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// A paperColumns makes features as the paper's scripts do: a number for each word of a column, in the order of the
// alphabet; some columns less their mean, over their standard deviation, both of the rows that are trained on; and a
// column of ones. No epsilon covers that: it looks at the rows.
type paperColumns struct {
	label    string
	classes  []string // of the label; nil: it is a number
	standard []string // columns that are standardised
	pooled   bool     // by all silos' rows to train on; else each silo by its own
	norm     float64  // no row's features are longer, in any trial
}

var insuranceColumns = paperColumns{label: "charges", standard: []string{"age", "bmi"}, norm: 8}

var obesityColumns = paperColumns{label: "NObeyesdad", standard: []string{"Age", "Height", "Weight", "CH2O", "TUE"}, pooled: true,
	norm: 12, classes: []string{"Insufficient_Weight", "Normal_Weight", "Overweight_Level_I", "Overweight_Level_II",
		"Obesity_Type_I", "Obesity_Type_II", "Obesity_Type_III"}}

// spec declares a task of as many coordinates, with sets as --set has them. Nothing of it is run but the loss.
func (p paperColumns) spec(columns int, sets []string) (*task.Spec, error) {
	names := make([]string, columns)
	for i := range names {
		names[i] = fmt.Sprintf("{column: x%d, kind: numeric, min: -10, max: 10, scale: raw}", i)
	}
	label, loss := "{column: y, min: 0, max: 65000, scale: raw}", "squared"
	if p.classes != nil {
		label, loss = "{column: y, classes: ["+strings.Join(p.classes, ", ")+"]}", "softmax"
	}
	return task.Parse(fmt.Appendf(nil, "version: 1\nname: paper\nevents: {format: csv, header: true}\n"+
		"features: {columns: [%s]}\nintercept: 0\nnorm_bound: %g\nlabel: %s\nmodel: {loss: %s}\n"+
		"privacy: {epsilon: 1, delta: 1e-5, trust: local}\nsilo: {count: 3, units: 100}\n"+
		"schedule: {interactive: true}\nvalidation: {off: true}\n", strings.Join(names, ", "), p.norm, label, loss), sets)
}

// read returns the rows of a file with a header, and the label of each as the file has it.
func (p paperColumns) read(path string) (rows []convex.Example, labels []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, nil, err
	}
	names, at := lines[0], slices.Index(lines[0], p.label)
	if at < 0 {
		return nil, nil, fmt.Errorf("%s: no column %q", path, p.label)
	}
	codes := make([]map[string]float64, len(names))
	for j := range names {
		codes[j] = alphabet(lines[1:], j)
	}
	for _, line := range lines[1:] {
		row := convex.Example{}
		for j, text := range line {
			v, number := codes[j][text], codes[j] == nil
			if number {
				if v, err = strconv.ParseFloat(text, 64); err != nil {
					return nil, nil, err
				}
			}
			switch {
			case j != at:
				row.Value = append(row.Value, v)
			case number:
				row.Label = v
			default:
				row.Label = float64(slices.Index(p.classes, text))
			}
		}
		row.Value = append(row.Value, 1)
		rows, labels = append(rows, row), append(labels, line[at])
	}
	return rows, labels, nil
}

// alphabet returns the number of each word of a column, in the order of the alphabet; nil where all are numbers.
func alphabet(lines [][]string, column int) map[string]float64 {
	var words []string
	numbers := true
	for _, line := range lines {
		_, err := strconv.ParseFloat(line[column], 64)
		numbers = numbers && err == nil
		words = append(words, line[column])
	}
	if numbers {
		return nil
	}
	slices.Sort(words)
	out := map[string]float64{}
	for i, w := range slices.Compact(words) {
		out[w] = float64(i)
	}
	return out
}

// places returns the coordinates of the columns that are standardised.
func (p paperColumns) places(path string) (out []int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	names, err := csv.NewReader(file).Read()
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == p.label })
	for _, name := range p.standard {
		j := slices.Index(names, name)
		if j < 0 {
			return nil, fmt.Errorf("%s: no column %q", path, name)
		}
		out = append(out, j)
	}
	return out, nil
}

// standardise returns rows to train on and to test on, by silo, with these coordinates less the mean of the rows to
// train on and over their standard deviation.
func (p paperColumns) standardise(at []int, train, test [][]convex.Example) (trained, tested [][]convex.Example) {
	groups := make([][]convex.Example, len(train)) // whose moments are a silo's
	for i := range groups {
		if groups[i] = train[i]; p.pooled {
			groups[i] = slices.Concat(train...)
		}
	}
	out := [2][][]convex.Example{}
	for i := range train {
		mean, sd := map[int]float64{}, map[int]float64{}
		for _, j := range at {
			var column []float64
			for _, x := range groups[i] {
				column = append(column, x.Value[j])
			}
			if mean[j], sd[j] = stat.MeanStdDev(column, nil); !(sd[j] > 0) || math.IsInf(sd[j], 0) {
				sd[j] = 1
			}
		}
		for k, rows := range [2][]convex.Example{train[i], test[i]} {
			made := make([]convex.Example, len(rows))
			for n, x := range rows {
				x.Value = slices.Clone(x.Value)
				for _, j := range at {
					x.Value[j] = (x.Value[j] - mean[j]) / sd[j]
				}
				made[n] = x
			}
			out[k] = append(out[k], made)
		}
	}
	return out[0], out[1]
}
