package consent

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/learner/task"
)

// everyKind declares columns of every kind, and what is made from several.
const everyKind = `
version: 1
name: every
events: {format: csv, header: true}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100}
    - {column: rate, kind: numeric, min: -1, max: 3, scale: unit}
    - {column: plain, kind: numeric, min: -2, max: 2, scale: raw, missing: {tokens: ["-999"], fill: 1, indicator: true}}
    - {column: height, kind: numeric, scale: standard, mean: 170, std: 10, clip: 2}
    - {column: money, kind: numeric, scale: log, mean: 2, std: 1, unit: 10, marks: [$, ","]}
    - {column: member, kind: indicator}
    - {column: job, kind: categorical, vocabulary: [clerk, baker], unknown: other}
    - {column: town, kind: hashed, buckets: 5}
    - {column: age, kind: bucketed, edges: [20, 40]}
    - {column: hour, field: at, part: hour, kind: hats, knots: [0, 6, 24]}
    - {column: words, kind: text, buckets: 7}
    - {column: soil, kind: onehot-group, columns: [s1, s2]}
    - {column: ratio, field: debt, over: rate, kind: numeric, min: 0, max: 4, hidden: true}
  crosses:
    - {columns: [job, age]}
    - {columns: [job, town], buckets: 4}
    - {columns: [job], number: age}
  polynomial: {columns: [age, ratio], degree: 2}
  fourier: {columns: [age, rate, ratio], dimension: 3, gamma: 0.5, seed: 7}
label: {column: y, positive: ["yes"], negative: ["no"]}
model: {loss: logistic}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 10000}
`

const ofVector = `
version: 1
name: vector
events: {format: libsvm}
features:
  vector: {dimension: 3, min: -2, max: 2, scale: symmetric}
  fourier: {dimension: 2, gamma: 2}
norm_bound: 0.5
label: {min: 0, max: 100, scale: log, unit: 5}
model: {loss: squared}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 10000}
`

func featureVectors(t *testing.T) (out []featureVector) {
	whole := map[string]string{"age": "30", "rate": "0.5", "plain": "-0.5", "height": "175", "money": "$1,234.5",
		"member": "1", "job": " baker", "town": "Ulm", "at": "2024-02-29T13:30:05Z", "words": "The cat, the dog; 42",
		"s1": "0", "s2": "1", "debt": "1"}
	with := func(label string, changes ...string) rowVector {
		r := rowVector{Fields: maps.Clone(whole), Label: label}
		for i := 0; i < len(changes); i += 2 {
			r.Fields[changes[i]] = changes[i+1]
		}
		return r
	}
	for _, c := range []featureVector{
		{Name: "every kind of column", Declaration: []byte(everyKind), Rows: []rowVector{
			with("yes"), with(" no "), with("yes", "age", "", "plain", "-999.0", "job", "", "words", "", "at", ""),
			with("yes", "age", "250", "height", "1", "money", "-3", "job", "miner", "member", "0.49", "rate", "0"),
			with("yes", "age", "40", "at", "2024-02-29", "s1", "", "s2", "0", "town", ""),
			with("perhaps"), with("yes", "age", "forty"), with("yes", "s1", "1"), with("yes", "at", "2023-02-29"),
			with("yes", "member", "NaN", "age", "nan", "money", "1e400"), with("")}},
		{Name: "a vector", Declaration: []byte(ofVector), Rows: []rowVector{
			{Index: []int32{0, 2}, Value: []float64{1, -4}, Label: "12"},
			{Index: []int32{1}, Value: []float64{0.25}, Label: "-1"},
			{Value: []float64{0.5, 0.25, 0}, Label: "1000"},
			{Index: []int32{2, 1}, Value: []float64{1, 1}, Label: "1"}, {Index: []int32{3}, Value: []float64{1}, Label: "1"}}},
		{Name: "scales", Declaration: []byte(ofVector), Rows: []rowVector{
			{Index: []int32{0}, Value: []float64{2}, Label: "0"}}},
	} {
		var set []string
		if c.Name == "scales" {
			set = []string{"features.precondition={second_moments: [1, 0.5, 0.25, 1, 1], damping: 0.5}", "norm_bound=0"}
		}
		spec, err := task.Parse(c.Declaration, set)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		a := ofSpec(t, spec)
		c.Declaration, c.Bound, c.NormBound = canonical(t, spec), a.Features.Bound(), a.Features.Longest()
		for i := range c.Rows {
			c.Rows[i].mapped(t, a.Features)
		}
		out = append(out, c)
	}
	return out
}

// TestStatisticVectors computes what a device reports of rows, and compares it with the file.
func TestStatisticVectors(t *testing.T) {
	file := statisticFile{Features: featureVectors(t), Statistics: statisticVectors(t)}
	golden.JSON(t, filepath.Join("../../../docs/vectors", "statistic.json"), file, 1e-11)
}
