package sim

import (
	"bufio"
	"io"
	"iter"
	"strconv"

	"github.com/panlearn/panlearn/learner/convex"
)

// TruthNorm is the norm of theta* of a synthetic population by default.
const TruthNorm = 3

// WriteEvents writes events as JSON lines: {"x0":..,"x1":..,"y":..}.
func WriteEvents(w io.Writer, events iter.Seq[convex.Example]) error {
	out := bufio.NewWriter(w)
	var line []byte
	for e := range events {
		line = append(line[:0], '{')
		for i, v := range e.Value {
			line = append(line, `"x`...)
			line = strconv.AppendInt(line, int64(i), 10)
			line = append(line, `":`...)
			line = strconv.AppendFloat(line, v, 'g', -1, 64)
			line = append(line, ',')
		}
		line = append(line, `"y":`...)
		line = strconv.AppendFloat(line, e.Label, 'g', -1, 64)
		line = append(line, "}\n"...)
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}
