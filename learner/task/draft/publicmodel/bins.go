package publicmodel

import (
	"math"
	"slices"
	"sort"
)

// mostBins is the most bins of an input: 255 take four times as long and are no better.
const mostBins = 128

// A Table is the inputs of all rows, sorted into bins for the growing of trees.
type Table struct {
	rows  int
	bins  [][]uint8   // of each input, for each row
	edges [][]float32 // of each input: bin b holds the values above edges[b-1] and at most edges[b]
	first []int       // of each input, the place of its first bin among the bins of all
	total int         // bins
}

// NewTable sorts inputs, each a column with one value a row, into bins.
func NewTable(columns [][]float64) *Table {
	t := &Table{}
	for _, column := range columns {
		t.rows = len(column)
		edges := edgesOf(column)
		bins := make([]uint8, len(column))
		for i, x := range column {
			v := float32(x)
			bins[i] = uint8(sort.Search(len(edges), func(j int) bool { return v <= edges[j] }))
		}
		t.bins, t.edges, t.first = append(t.bins, bins), append(t.edges, edges), append(t.first, t.total)
		t.total += len(edges) + 1
	}
	return t
}

// edgesOf returns thresholds between the different values of a column; between quantiles where they are many.
func edgesOf(column []float64) []float32 {
	sorted := make([]float32, len(column))
	for i, x := range column {
		sorted[i] = float32(x)
	}
	slices.Sort(sorted)
	distinct := slices.Compact(slices.Clone(sorted))
	if len(distinct) <= mostBins {
		edges := make([]float32, 0, len(distinct))
		for i := 1; i < len(distinct); i++ {
			edges = append(edges, between(distinct[i-1], distinct[i]))
		}
		return edges
	}
	var edges []float32
	for b := 1; b < mostBins; b++ {
		low := sorted[b*len(sorted)/mostBins]
		at := sort.Search(len(distinct), func(j int) bool { return distinct[j] > low })
		if at == len(distinct) {
			break
		}
		if e := between(low, distinct[at]); len(edges) == 0 || e > edges[len(edges)-1] {
			edges = append(edges, e)
		}
	}
	return edges
}

// between returns a finite float32 that is at least low and below high.
func between(low, high float32) float32 {
	middle := float32((float64(low) + float64(high)) / 2)
	switch {
	case math.IsInf(float64(low), 0):
		return math.Nextafter32(high, low)
	case middle >= high || math.IsInf(float64(middle), 0):
		return low
	}
	return middle
}
