package draft

import (
	"math"
	"slices"
	"strings"
)

// leaks looks for columns that repeat the label: such a column will not be there when the label is to be
// predicted. It keeps the columns that tell the label one to one, and the pairs that add up to it, for as long
// as no row contradicts them.
type leaks struct {
	label int
	rows  int
	twins []*twin // by column; nil: no leak
	pairs [][2]int
}

// A twin is a column whose words map one to one to the label's, or whose numbers equal the label's.
type twin struct {
	to, from map[string]string
	words    bool // hold so far
	numbers  bool
}

const (
	mostTwinWords = 64
	mostPaired    = 200 // columns of numbers of which pairs are looked at
	leastRows     = 20  // before anything is believed
)

func newLeaks(columns, label int) *leaks {
	l := &leaks{label: label, twins: make([]*twin, columns)}
	for i := range l.twins {
		if i != label {
			l.twins[i] = &twin{to: map[string]string{}, from: map[string]string{}, words: true, numbers: true}
		}
	}
	return l
}

func (l *leaks) add(fields []string) {
	label := strings.TrimSpace(fields[l.label])
	if slices.Contains(unlabelled, label) {
		return
	}
	y, isNumber := number(label)
	if l.rows++; l.rows == 1 && isNumber {
		l.begin(fields)
	}
	for i, t := range l.twins {
		if t == nil || t.holds(strings.TrimSpace(fields[i]), label, y, isNumber) {
			continue
		}
		l.twins[i] = nil
	}
	kept := l.pairs[:0]
	for _, p := range l.pairs {
		a, isA := number(strings.TrimSpace(fields[p[0]]))
		b, isB := number(strings.TrimSpace(fields[p[1]]))
		if isNumber && isA && isB && math.Abs(a+b-y) <= 1e-9*max(math.Abs(a), math.Abs(b)) {
			kept = append(kept, p)
		}
	}
	l.pairs = kept
}

// begin takes all pairs of columns that hold a number in the first row.
func (l *leaks) begin(fields []string) {
	var numbers []int
	for i, cell := range fields {
		if _, ok := number(strings.TrimSpace(cell)); ok && i != l.label {
			numbers = append(numbers, i)
		}
	}
	if len(numbers) > mostPaired {
		return
	}
	for k, i := range numbers {
		for _, j := range numbers[k+1:] {
			l.pairs = append(l.pairs, [2]int{i, j})
		}
	}
}

func (t *twin) holds(cell, label string, y float64, isNumber bool) bool {
	if x, ok := number(cell); t.numbers {
		t.numbers = ok && isNumber && x == y
	}
	if t.words {
		to, known := t.to[cell]
		from, back := t.from[label]
		switch {
		case known != back || known && (to != label || from != cell) || len(t.to) > mostTwinWords:
			t.words = false
		case !known:
			cell, label = strings.Clone(cell), strings.Clone(label)
			t.to[cell], t.from[label] = label, cell
		}
	}
	return t.words || t.numbers
}

// found returns for each column that is a leak the reason why.
func (l *leaks) found(columns []*column) map[*column]string {
	out := map[*column]string{}
	if l.rows < leastRows {
		return out
	}
	label := columns[l.label]
	for i, t := range l.twins {
		if t != nil && len(columns[i].words) > 1 && (t.numbers || len(t.to) > 1) {
			out[columns[i]] = "it says in other words what the label says: " + label.name + " can be read off it"
		}
	}
	for _, p := range l.pairs {
		a, b := columns[p[0]], columns[p[1]]
		if len(a.words) > 1 && len(b.words) > 1 {
			out[a] = "with " + b.name + " it adds up to the label " + label.name
			out[b] = "with " + a.name + " it adds up to the label " + label.name
		}
	}
	return out
}
