package draft

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
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
	Name  string // base of the task's name, such as its file's name; empty: the sample's name

	// Public and Start name the files beside the task file that the public model and the start will be in, as the
	// task file names them. Without both the task begins with nothing.
	Public, Start string
	NoLabels      bool // the task begins with nothing that labels of the sample tell
	NoTrees       bool // a public model has no trees
}

// A Draft is a task file with the remarks that its user must see at once.
type Draft struct {
	Task []byte // YAML, which task.Parse accepts
	// Public is the content of the file of the public model; nil: the task has none.
	Public []byte
	// Start is the point that the task begins with, for its file: of each score the coordinates and the intercept. nil:
	// the task has none.
	Start []float64
	Spec  *task.Spec // the task without its start
	Notes []string   // sentences: what was taken for the label, what was left out. They show names, and words of the label
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
	if layout.Events.Format.Vectors() {
		err = w.vector()
	} else {
		err = w.table()
	}
	if err != nil {
		return nil, fmt.Errorf("sample %q: %w", path, err)
	}
	spec, err := w.check()
	if err != nil {
		return nil, fmt.Errorf("sample %q: no task can be made of it: %w", path, err)
	}
	return &Draft{Task: []byte(w.file.String()), Public: w.public, Start: w.start, Spec: spec, Notes: w.notes}, nil
}

// check returns the declaration without its start; it refuses a draft that is no task.
func (w *writer) check() (*task.Spec, error) {
	text := strings.Replace(w.file.String(), ", start: "+fileName(w.options.Start)+"}\n", "}\n", 1)
	if w.public != nil {
		text = strings.Replace(text, "\n  public: "+fileName(w.options.Public)+"\n", "\n  public: "+hashOf(w.public)+"\n", 1)
	}
	spec, err := task.Parse([]byte(text), nil)
	if err == nil {
		spec, err = spec.WithPublic(w.public)
	}
	var m *task.FeatureMap
	if err == nil {
		m, err = spec.Compile()
	}
	if err == nil && w.start != nil && len(w.start) != m.Outputs()*m.Dim() {
		err = fmt.Errorf("a start of %d numbers, want %d", len(w.start), m.Outputs()*m.Dim())
	}
	return spec, err
}

// hashOf returns the hash by which a declaration names a file.
func hashOf(file []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(file)) }

// fileName writes the name of a file as a task file has it.
func fileName(name string) string { return text(filepath.Base(name)) }

// A writer puts the file together.
type writer struct {
	path    string
	layout  source.Layout
	options Options
	file    strings.Builder
	notes   []string
	public  []byte
	start   []float64
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
	whole := append([]field{{"column", text(t.label.name)}}, label.label...)
	b, err := w.begin(features, nil, 0, whole, label, t.rows)
	if err != nil {
		return err
	}
	w.beginFeatures(b)
	w.line("  columns:")
	var left []string
	for i, f := range features {
		if f.entry == nil {
			w.comment("    ", "Left out: %s, %s.", text(f.column.name), f.note)
			left = append(left, text(f.column.name))
			continue
		}
		if kind := entry(f.entry).get("kind"); f.note != "" && (b == nil || kind == string(task.OneHot)) {
			w.comment("    ", "%s: %s.", text(f.column.name), f.note)
		}
		entries := []entry{f.entry}
		if b != nil {
			entries = b.entries[i]
		}
		for _, e := range entries {
			w.line("    - %s", mapping(e))
		}
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
	w.rest(t.label, t.why, whole, label, t.count, b)
	return nil
}

// beginFeatures writes the beginning of the section, and describes the task's start.
func (w *writer) beginFeatures(b *beginning) {
	w.line("features:")
	if b == nil {
		return
	}
	w.comment("  ", "%s", strings.Join(b.words, " "))
	for _, words := range b.words {
		w.note("%s", strings.TrimSuffix(words, "."))
	}
	if w.start, w.public = b.start, b.file; b.file != nil {
		w.line("  public: %s", fileName(w.options.Public))
	}
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
		"An event with an index above dimension is invalid: make it larger if the sample may lack the last ones, by an index with value 0 in "+
			"the sample. One with more than max_nonzeros values is scaled down.")
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
	begun, err := w.begin(nil, entry, v.dimension, label.label, label, v.rows)
	if err != nil {
		return err
	}
	w.beginFeatures(begun)
	if begun != nil {
		entry = begun.vector
	}
	w.line("  vector: %s\n", mapping(entry))
	w.note("label: %s", label.kind)
	w.rest(v.label, "", label.label, label, v.count, begun)
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
	w.line("version: 1\nname: %s\n", text(nameOf(cmp.Or(w.options.Name, w.path))))
	if len(w.layout.Events.Columns) > 0 {
		w.comment("", "The data have no header: columns are named by their place. Call them what you like, here and below.")
	}
	w.line("events: %s\n", mapping(w.events()))
}

// events returns how the sample is written.
func (w *writer) events() []field {
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
		entry = append(entry, field{"columns", texts(e.Columns)})
	}
	return entry
}

// rest writes label, model, privacy and schedule.
func (w *writer) rest(c *column, why string, label []field, t target, n count, b *beginning) {
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
	if b != nil && b.label != nil {
		label = b.label
	}
	w.line("label: %s\n", mapping(label))
	model, schedule := t.model, ""
	if b != nil {
		if b.start != nil {
			model = append(slices.Clone(model), field{"start", fileName(w.options.Start)})
		}
		if b.bound > 0 {
			w.comment("", "The norm that %.0f %% of the sample keep; longer events are scaled down to it.", 100*boundShare)
			w.line("norm_bound: %s", decimal(b.bound))
		}
		if b.rounds > 0 {
			schedule = fmt.Sprintf(", rounds: {max: %d}", b.rounds)
		}
	}
	w.line("model: %s\n", mapping(model))
	users := cmp.Or(w.options.Users, n.rows+n.invalid)
	w.comment("", "What one user's report may tell, at most: a factor e^epsilon, and delta beside it.")
	w.comment("", "With suite: mlkem768x25519, reports stay secret from a quantum computer too: 1,088 bytes more each.")
	w.line("privacy: {epsilon: 1, delta: %s, trust: shuffle}\n", deltaOf(users))
	if w.options.Users == 0 {
		w.comment("", "As many as the sample has rows: write how many people will take part, each with one event.")
	}
	w.comment("", "Where people keep coming, and what they do changes, continuous: adaptive learns from them for ever.")
	w.line("schedule: {users: %d%s}", users, schedule)
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
