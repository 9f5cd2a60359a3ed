package source

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/panlearn/panlearn/learner/task"
)

// libsvm reads "label index:value index:value ... # comment": indices count from 1 and increase strictly.
type libsvm struct {
	lines     *lines
	dimension int
	index     []int32
	value     []float64
	// unlabelled lines may begin with a feature.
	unlabelled bool
}

func newLIBSVM(l *lines, schema task.Schema) (rows, error) {
	return &libsvm{lines: l, dimension: schema.Dimension, unlabelled: schema.Unlabelled}, nil
}

// startsWithLabel reports whether the first field of a line is no feature.
func startsWithLabel(line []byte) bool {
	for field := range bytes.FieldsSeq(line) {
		return !bytes.Contains(field, []byte(":"))
	}
	return false
}

func (f *libsvm) close() error { return nil }

func (f *libsvm) next(row *task.Row) error {
	line, err := f.lines.row(row)
	if err != nil {
		return err
	}
	line, _, _ = bytes.Cut(line, []byte("#"))
	if f.index == nil {
		f.index = make([]int32, 0, 64) // nil would mean dense
	}
	f.index, f.value = f.index[:0], f.value[:0]
	labelled := f.unlabelled && !startsWithLabel(line)
	last := 0
	for field := range bytes.FieldsSeq(line) {
		if !labelled {
			row.Label, labelled = string(field), true
			continue
		}
		k := len(f.value) + 1
		before, after, ok := bytes.Cut(field, []byte(":"))
		if !ok {
			return f.lines.fail("", fmt.Sprintf("feature number %d is not index:value", k))
		}
		i, err := strconv.Atoi(string(before))
		if err != nil || i <= last || i > f.dimension {
			return f.lines.fail("", fmt.Sprintf("feature number %d: want indices from 1 to %d that increase", k, f.dimension))
		}
		last = i
		v, err := strconv.ParseFloat(string(after), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || bytes.ContainsAny(after, "xX") {
			return f.lines.fail("", fmt.Sprintf("feature number %d: the value is not a finite decimal number", k))
		}
		f.index = append(f.index, int32(i-1))
		f.value = append(f.value, v)
	}
	if !labelled {
		return f.lines.fail("", "no label")
	}
	row.Index, row.Value = f.index, f.value
	return nil
}
