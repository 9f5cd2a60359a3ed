package draft

import (
	"slices"
	"strconv"
	"strings"

	"github.com/panlearn/panlearn/learner/task"
)

// groups finds runs of columns of zeros and ones in which every row has exactly one 1: indicators of one thing,
// made by hand. Columns of other kinds between them end a run; a column that is always 0 stays in it.
func groups(columns []*column, rows int, label *column) (out [][]*column) {
	for first := 0; first < len(columns); first++ {
		if n := groupFrom(columns[first:], rows, label); n > 0 {
			out = append(out, columns[first:first+n])
			first += n - 1
		}
	}
	return out
}

// groupFrom returns the length of the group that the columns begin with; 0 is none.
func groupFrom(columns []*column, rows int, label *column) int {
	union := make([]uint64, (rows+63)/64)
	total := 0
	for n, c := range columns {
		if c == label || !c.binary || len(c.marks) > 0 || c.gaps() > 0 || n == 0 && c.setCount == 0 ||
			total+c.setCount > rows {
			return 0
		}
		for i, word := range c.set {
			if union[i]&word != 0 {
				return 0
			}
			union[i] |= word
		}
		if total += c.setCount; total == rows && n > 0 {
			return n + 1
		}
	}
	return 0
}

// groupFeature returns the entry of a group, under a name that no column has: the common beginning of the names of its
// columns, or, where that is a letter, ends in a number or is the beginning of others too, the first and the last.
func groupFeature(g []*column, all []*column) feature {
	names := make([]string, len(g))
	for i, c := range g {
		names[i] = c.name
	}
	name := strings.TrimRight(prefix(names), "_-.=: ")
	others := slices.ContainsFunc(all, func(c *column) bool {
		return strings.HasPrefix(c.name, name) && !slices.Contains(names, c.name)
	})
	if len(name) < 2 || others || slices.Contains(names, name) || strings.ContainsAny(name[len(name)-1:], "0123456789") {
		name = names[0] + ".." + names[len(names)-1]
	}
	for base, k := name, 2; slices.ContainsFunc(all, func(c *column) bool { return c.name == name }); k++ {
		name = base + "_" + strconv.Itoa(k)
	}
	return feature{column: g[0], width: len(g), note: "one of " + strconv.Itoa(len(g)) +
		" columns is 1 in every row, so they are one group",
		entry: []field{{"column", text(name)}, {"kind", string(task.OneHot)}, {"columns", texts(names)}}}
}

// prefix returns the longest common beginning of all names, up to a character of one byte.
func prefix(names []string) string {
	out := names[0]
	for _, n := range names[1:] {
		for !strings.HasPrefix(n, out) {
			out = out[:len(out)-1]
		}
	}
	return strings.ToValidUTF8(out, "")
}
