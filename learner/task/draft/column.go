package draft

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// Limits of what is remembered of a column.
const (
	mostWords    = 20000 // distinct words
	longestWord  = 200   // bytes; longer ones are text
	mostQuantile = 8192  // values that quantiles are taken of
)

// missingWords are the words for a missing value.
var missingWords = append(task.MissingWords(), "")

// unlabelled are the words that are no names of classes.
var unlabelled = []string{"", "?", "NA", "N/A", "NaN", "nan", "NULL", "null"}

// number reads a cell as tasks read numbers.
func number(cell string) (float64, bool) {
	x, err := strconv.ParseFloat(cell, 64)
	return x, err == nil && math.Abs(x) <= mostMagnitude && !strings.ContainsAny(cell, "xX_")
}

// mostMagnitude is far below what a task accepts as a bound.
const mostMagnitude = 1e90

var dates = regexp.MustCompile(
	`^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|\d{1,2} [A-Za-z]{3,9}\.? \d{4})([T ]\d{1,2}:\d{2}.*)?$|^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$`)

// A column holds the facts about one field of the sample.
type column struct {
	name string
	rows int

	absent  []string       // words for a value that is not there
	missing map[string]int // those that occur
	others  map[string]int // neither numbers nor missing: words
	words   map[string]int // every cell that is not missing, as text; at most mostWords different ones
	many    bool           // there were more
	long    bool           // a cell was longer than longestWord
	foreign int            // cells that are not UTF-8
	commas  int            // cells with a decimal comma
	dates   int
	iso     int             // dates that tasks read
	parts   [3]spread       // of their datedParts
	marks   map[string]bool // that numbers have, such as $
	blanks  int             // cells of several words

	numbers int
	low     float64
	high    float64
	whole   bool // all numbers are
	running bool // each is the one before and 1
	last    float64
	systematic
	bits
}

// A systematic sample of numbers, for quantiles.
type systematic struct {
	kept   []float64 // every stride-th number
	stride int
}

// bits are the numbers of a column while all of them are 0 or 1.
type bits struct {
	binary   bool     // they still are
	set      []uint64 // the rows with a 1
	setCount int
}

func newColumn(name string) *column {
	return &column{name: name, absent: missingWords, missing: map[string]int{},
		others: map[string]int{}, marks: map[string]bool{}, words: map[string]int{}, low: math.Inf(1),
		high: math.Inf(-1), whole: true, running: true, systematic: systematic{stride: 1}, bits: bits{binary: true}}
}

func newLabel(name string) *column {
	c := newColumn(name)
	c.absent = unlabelled
	return c
}

// add counts a cell.
func (c *column) add(cell string) {
	cell = strings.TrimSpace(cell)
	c.rows++
	if slices.Contains(c.absent, cell) {
		c.missing[cell]++
		return
	}
	c.addWord(cell)
	x, ok := c.number(cell)
	if !ok {
		c.addOther(cell)
		return
	}
	c.numbers++
	c.low, c.high = min(c.low, x), max(c.high, x)
	c.whole = c.whole && x == math.Trunc(x)
	c.running = c.running && (c.numbers == 1 || x == c.last+1)
	c.last = x
	if (c.numbers-1)%c.stride == 0 {
		c.keep(x)
	}
	if c.binary {
		c.bits.add(c.rows-1, x)
	}
}

// addWord counts the cell as text.
func (c *column) addWord(cell string) {
	if len(cell) > longestWord {
		c.long = true
		return
	}
	if _, known := c.words[cell]; !known {
		if len(c.words) >= mostWords {
			c.many = true
			return
		}
		cell = strings.Clone(cell) // it would keep its line
	}
	c.words[cell]++
}

func (c *column) addOther(cell string) {
	switch {
	case !utf8.ValidString(cell):
		c.foreign++
	case source.DecimalComma(cell):
		c.commas++
	case dates.MatchString(cell):
		c.dates++
		c.addDate(cell)
	case strings.Contains(cell, " "):
		c.blanks++
	}
	if _, known := c.others[cell]; known || len(c.others) < 100 && len(cell) <= longestWord {
		c.others[strings.Clone(cell)]++
	}
}

// keep thins what is kept evenly, so that it is a systematic sample of all.
func (c *systematic) keep(x float64) {
	if c.kept = append(c.kept, x); len(c.kept) < mostQuantile {
		return
	}
	for i := range len(c.kept) / 2 {
		c.kept[i] = c.kept[2*i]
	}
	c.kept, c.stride = c.kept[:len(c.kept)/2], 2*c.stride
}

// add counts the number of a row.
func (c *bits) add(row int, x float64) {
	if x != 0 && x != 1 {
		c.binary, c.set = false, nil
		return
	}
	for len(c.set) <= row/64 {
		c.set = append(c.set, 0)
	}
	if x == 1 {
		c.set[row/64] |= 1 << (row % 64)
		c.setCount++
	}
}

// present returns the number of cells that hold something.
func (c *column) present() int {
	n := c.rows
	for _, k := range c.missing {
		n -= k
	}
	return n
}

// numeric reports whether the column holds numbers: all cells but missing ones, and at most three odd words in one cell
// of twenty.
func (c *column) numeric() bool {
	odd := c.present() - c.numbers
	return c.numbers > 0 && (odd == 0 || len(c.others) <= 3 && !c.long && odd <= c.present()/20)
}

// gaps returns the number of cells of a column of numbers that hold none.
func (c *column) gaps() int { return c.rows - c.numbers }

// tokens returns the words that mean a missing number. Tasks read blanks so by themselves.
func (c *column) tokens() []string {
	out := append(slices.Sorted(maps.Keys(c.missing)), slices.Sorted(maps.Keys(c.others))...)
	return slices.DeleteFunc(out, func(w string) bool { return w == "" })
}

// ranked returns the words, the most frequent first; numbers in their order.
func (c *column) ranked() []string {
	out := slices.Collect(maps.Keys(c.words))
	slices.SortFunc(out, func(a, b string) int {
		x, isX := number(a)
		y, isY := number(b)
		switch {
		case isX && isY && c.numeric() && x != y:
			return int(math.Copysign(1, x-y))
		case c.words[a] != c.words[b]:
			return c.words[b] - c.words[a]
		}
		return strings.Compare(a, b)
	})
	return out
}

// quantile returns a quantile of the column's numbers, from the kept ones, which must be sorted.
func quantile(sorted []float64, q float64) float64 {
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
