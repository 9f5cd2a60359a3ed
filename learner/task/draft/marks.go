package draft

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// markedNumber is a number as tables for people have it: a sign, a currency, thousands in groups, a per cent.
var markedNumber = regexp.MustCompile(
	`^([+-]?)([$€£¥]?) ?([+-]?)([1-9]\d{0,2}(?:,\d{3})+|\d+)?(\.\d*)?(?: ?([%€]))?$`)

// marked reads a cell that is a number once the marks that it returns are left out.
func marked(cell string) (x float64, marks []string, ok bool) {
	m := markedNumber.FindStringSubmatch(cell)
	if m == nil {
		return 0, nil, false
	}
	for _, mark := range []string{m[2], m[6]} {
		if mark != "" {
			marks = append(marks, mark)
		}
	}
	if strings.Contains(m[4], ",") {
		marks = append(marks, ",")
	}
	plain := cell
	for _, mark := range marks {
		plain = strings.ReplaceAll(plain, mark, "")
	}
	x, ok = number(strings.TrimSpace(plain))
	return x, marks, ok
}

// number reads a cell, with marks or without, and remembers the marks.
func (c *column) number(cell string) (float64, bool) {
	if x, ok := number(cell); ok {
		return x, true
	}
	x, marks, ok := marked(cell)
	for _, m := range marks {
		if ok {
			c.marks[m] = true
		}
	}
	return x, ok
}

// withMarks adds the marks of the column's numbers to its entry.
func (c *column) withMarks(entry []field) []field {
	if len(c.marks) == 0 {
		return entry
	}
	return append(entry, field{"marks", texts(slices.Sorted(maps.Keys(c.marks)))})
}
