package draft

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// Options are the caller's choices; zero values leave the choice to the sample.
type Options struct {
	Label string // column of the label
	Loss  string // one of convex.LossNames
	Users int    // that will take part; 0: as many as the sample has rows
	Name  string // that the task's is made from, such as that of its file; empty: that of the sample
}

// A Draft is a task file with the remarks that its user must see at once.
type Draft struct {
	Task  []byte   // YAML, which task.Parse accepts
	Notes []string // sentences: what was taken for the label, what was left out. They show names, and words of the label
}

// FromSample drafts a task from a file, or the files of a pattern, which have to be public.
func FromSample(path string, o Options) (*Draft, error) {
	if o.Users < 0 {
		return nil, fmt.Errorf("%d users: want at least 1", o.Users)
	}
	layout, err := source.Detect(path)
	if err != nil {
		return nil, fmt.Errorf("sample %q: %w", path, err)
	}
	w := &writer{path: path, layout: layout, options: o}
	if layout.Events.Format == task.LIBSVM {
		err = w.vector()
	} else {
		err = w.table()
	}
	if err != nil {
		return nil, fmt.Errorf("sample %q: %w", path, err)
	}
	spec, err := task.Parse([]byte(w.file.String()), nil)
	if err == nil {
		_, err = spec.Compile()
	}
	if err != nil {
		return nil, fmt.Errorf("sample %q: no task can be made of it: %w", path, err)
	}
	return &Draft{Task: []byte(w.file.String()), Notes: w.notes}, nil
}

// A writer puts the file together.
type writer struct {
	path    string
	layout  source.Layout
	options Options
	file    strings.Builder
	notes   []string
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.file, format+"\n", args...) }

func (w *writer) comment(indent, format string, args ...any) {
	comment(&w.file, indent, fmt.Sprintf(format, args...))
}

func (w *writer) note(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

func (w *writer) table() error {
	t, err := readTable(w.path, w.layout, w.options.Label)
	if err != nil {
		return err
	}
	label, err := targetOf(t.label, w.options.Loss)
	if err != nil {
		return err
	}
	features, err := t.features()
	if err != nil {
		return err
	}
	w.head(t.count, fmt.Sprintf("%d rows of %d columns", t.rows, len(w.layout.Fields)+len(w.layout.Passed)))
	w.line("features:\n  columns:")
	var left []string
	for _, f := range features {
		if f.entry == nil {
			w.comment("    ", "Left out: %s, %s.", text(f.column.name), f.note)
			left = append(left, text(f.column.name))
			continue
		}
		if f.note != "" {
			w.comment("    ", "%s: %s.", text(f.column.name), f.note)
		}
		w.line("    - %s", mapping(f.entry))
	}
	for _, p := range t.passed {
		w.comment("    ", "Left out: %s, %s.", text(p.name), p.why)
		left = append(left, text(p.name))
	}
	w.line("")
	w.note("label: the column %s, %s: %s", text(t.label.name), t.why, label.kind)
	if len(left) > 0 {
		w.note("left out: %s; the file says why", list(left, 10))
	}
	w.rest(t.label, t.why, append([]field{{"column", text(t.label.name)}}, label.label...), label, t.count)
	return nil
}

// features decides about all columns but the label.
func (t *table) features() ([]feature, error) {
	leaks := t.leaks.found(t.columns)
	grouped := map[*column]feature{} // empty for a column that is in the group of an earlier one
	for _, g := range groups(t.columns, t.rows, t.label) {
		for _, c := range g {
			grouped[c] = feature{}
		}
		grouped[g[0]] = groupFeature(g, t.columns)
	}
	var out []feature
	width := 0
	for _, c := range t.columns {
		if err := c.unreadable(); err != nil {
			return nil, err
		}
		if c == t.label {
			continue
		}
		f, member := grouped[c]
		switch {
		case !member:
			f = featureOf(c)
		case f.column == nil:
			continue
		}
		if why := leaks[c]; why != "" && f.entry != nil {
			f = feature{column: c, note: why}
		}
		for _, f := range append([]feature{f}, f.more...) {
			width += f.width
			out = append(out, f)
		}
	}
	if width == 0 {
		var why []string
		for _, f := range out {
			why = append(why, text(f.column.name)+" ("+f.note+")")
		}
		return nil, errors.New("no column makes a feature: " + list(why, 5))
	}
	return out, nil
}

func (w *writer) vector() error {
	if w.options.Label != "" {
		return errors.New("--label: libsvm has a place for the label, and no columns")
	}
	v, err := readVector(w.path, w.layout)
	if err != nil {
		return err
	}
	label, err := targetOf(v.label, w.options.Loss)
	if err != nil {
		return err
	}
	w.head(v.count, fmt.Sprintf("%d rows of libsvm", v.rows))
	w.comment("",
		"An event with an index above dimension is invalid: make it larger if the sample may lack the last ones. One with more than max_nonzeros "+
			"values is scaled down.")
	entry := []field{{"dimension", strconv.Itoa(v.dimension)}}
	b := outward(v.low, v.high, v.whole)
	switch most := max(-b.low, b.high); {
	case v.binary:
		entry = append(entry, field{"kind", string(task.Indicator)})
	case b.low == 0:
		entry = append(entry, field{"min", "0"}, field{"max", decimal(b.high)}, field{"scale", string(task.Unit)})
	default:
		entry = append(entry, field{"min", decimal(-most)}, field{"max", decimal(most)},
			field{"scale", string(task.Symmetric)})
	}
	if v.nonzeros < v.dimension {
		entry = append(entry, field{"max_nonzeros", strconv.Itoa(v.nonzeros)})
	}
	w.line("features:\n  vector: %s\n", mapping(entry))
	w.note("label: %s", label.kind)
	w.rest(v.label, "", label.label, label, v.count)
	return nil
}

// head writes the part of the file before the features.
func (w *writer) head(c count, size string) {
	w.comment("", "Drafted by learner init from the sample %s: %s.", text(filepath.Base(w.path)), size)
	w.comment("",
		"The sample has to be public, or paid for elsewhere: the bounds and words below were read off it without noise, and every device sees this file.")
	w.note("the sample %s has to be public: bounds and words of it are in the task, which every device sees",
		text(filepath.Base(w.path)))
	if c.invalid > 0 {
		w.comment("", "%s could not be read, the first in line %d: %s.", plural(c.invalid, "row"), c.first.Line,
			c.first.Reason)
		w.note("%d of %d rows could not be read: %v", c.invalid, c.rows+c.invalid, c.first)
	}
	w.line("version: 1\nname: %s\n", nameOf(cmp.Or(w.options.Name, w.path)))
	e := w.layout.Events
	entry := []field{{"format", string(e.Format)}}
	if e.Header {
		entry = append(entry, field{"header", "true"})
	}
	if e.Separator != "" && e.Separator != "," {
		entry = append(entry, field{"separator", strconv.Quote(e.Separator)})
	}
	if e.SkipLines > 0 {
		entry = append(entry, field{"skip_lines", strconv.Itoa(e.SkipLines)})
	}
	if len(e.Columns) > 0 {
		w.comment("", "The data have no header: columns are named by their place. Call them what you like, here and below.")
		entry = append(entry, field{"columns", texts(e.Columns)})
	}
	w.line("events: %s\n", mapping(entry))
}

// rest writes label, model, privacy and schedule.
func (w *writer) rest(c *column, why string, label []field, t target, n count) {
	taken := "The label"
	if why != "" {
		taken += " is the column " + text(c.name) + ", " + why
	}
	w.comment("", "%s: %s.", taken, join(t.kind, t.said))
	if t.note != "" {
		w.comment("", "%s", t.note)
	}
	if t.said != "" {
		w.note("%s", t.said)
	}
	if gaps := c.rows - c.present(); gaps > 0 {
		w.comment("", "%d rows of the sample have no label, and are invalid.", gaps)
		w.note("%d of %d rows have no label", gaps, c.rows)
	}
	w.line("label: %s\n", mapping(label))
	w.line("model: %s\n", mapping(t.model))
	users := cmp.Or(w.options.Users, n.rows+n.invalid)
	w.comment("", "What one user's report may tell, at most: a factor e^epsilon, and delta beside it.")
	w.line("privacy: {epsilon: 1, delta: %s, trust: shuffle}\n", deltaOf(users))
	if w.options.Users == 0 {
		w.comment("", "As many as the sample has rows: write how many people will take part, each with one event.")
	}
	w.comment("", "Where people keep coming, and what they do changes, continuous: adaptive learns from them for ever.")
	w.line("schedule: {users: %d}", users)
}

// deltaOf returns the largest power of ten that is at most a tenth of one user in all.
func deltaOf(users int) string {
	exponent := int(math.Ceil(math.Log10(10 * float64(users))))
	return "1e-" + strconv.Itoa(exponent)
}

var notInName = regexp.MustCompile(`[^a-z0-9_]+`)

// nameOf makes the name of a task from the name of a file.
func nameOf(path string) string {
	base := strings.ToLower(filepath.Base(path))
	for _, end := range []string{".gz", ".zst", ".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json", ".parquet",
		".libsvm", ".svm", ".data", ".yaml", ".yml"} {
		base = strings.TrimSuffix(base, end)
	}
	base = strings.Trim(notInName.ReplaceAllString(base, "-"), "-")
	if len(base) > 32 {
		base = strings.TrimRight(base[:32], "-")
	}
	return cmp.Or(base, "task")
}
