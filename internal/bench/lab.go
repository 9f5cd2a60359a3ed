package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// A lab is where one run works.
type lab struct {
	dir    string // removed at the end
	quick  bool
	log    io.Writer // progress
	report Report
	worlds int // made so far: each has a name of its own
}

// of picks a size for a whole run or a quick one.
func (l *lab) of(whole, quick int) int {
	if l.quick {
		return quick
	}
	return whole
}

func (l *lab) add(r Row) {
	fmt.Fprintln(l.log, strings.Join(r.cells(), "  "))
	l.report.Rows = append(l.report.Rows, r)
}

// folder makes a fresh folder.
func (l *lab) folder() (string, error) { return os.MkdirTemp(l.dir, "") }
