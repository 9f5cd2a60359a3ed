package device

import (
	"bytes"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device/consent"
)

const (
	columns = `
version: 1
name: income
events: {format: csv, header: true}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100}
    - {column: sector, kind: categorical, vocabulary: [private, public]}
label: {column: income, positive: [">50K"], negative: ["<=50K"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 100000, plan: proved}
`
	vector = `
version: 1
name: pixels
events: {format: libsvm}
features: {vector: {dimension: 4, min: -1, max: 1}}
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 100000, plan: proved}
`
	goodColumns = `{"age": 50, "sector": "public", "income": ">50K"}`
	goodVector  = `{"value": [1, 0, 0, 0], "label": "1"}`
)

// parserOf returns the parser of a declaration, of people of whom so many events enter a report, or of single events.
func parserOf(t testing.TB, declaration string, items int) *parser {
	t.Helper()
	spec, err := task.Parse([]byte(declaration), nil)
	if err != nil {
		t.Fatal(err)
	}
	features, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if items > 0 {
		spec.Privacy.Unit, spec.User = task.UnitUser, &task.User{Column: "who", Items: items}
	}
	p, err := newParser(&consent.Agreement{Spec: spec, Features: features, Loss: convex.Logistic{}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Events become the same examples as the same rows of a file would.
func TestEventsAreMapped(t *testing.T) {
	for _, test := range []struct {
		task, event string
		fits        bool
		want        convex.Example
	}{
		{vector, `{"value": [0.5, 0, 0, -1], "label": 1}`, true, convex.Example{Index: []int32{0, 3, 4},
			Value: []float64{0.5, -1, 1}, Label: 1}},
		{vector, `{"index": [1, 3], "value": [0.5, -1], "label": "-1"}`, true, convex.Example{Index: []int32{1, 3, 4},
			Value: []float64{0.5, -1, 1}, Label: -1}},
		{vector, `{"index": [3, 1], "value": [0.5, -1], "label": 1}`, false, convex.Example{}},
		{vector, `{"index": [-1], "value": [0.5], "label": 1}`, false, convex.Example{}},
		{vector, `{"index": [9], "value": [0.5], "label": 1}`, false, convex.Example{}},
		{vector, `{"index": [1], "value": [0.5, 1], "label": 1}`, false, convex.Example{}},
		{vector, `{"value": [1], "label": 1}`, false, convex.Example{}},
		{vector, `{"value": [1, 1, 1, 1e999], "label": 1}`, false, convex.Example{}},
		{vector, `{"value": [1, 1, 1, 1], "label": 3}`, false, convex.Example{}},
		{vector, `{"value": [1, 1, 1, 1]}`, false, convex.Example{}},
		{vector, `{"value": [1, 1, 1, 1], "label": [1]}`, false, convex.Example{}},
		{vector, `{"value": [1, 1, 1, 1], "label": 1, "more": 1}`, false, convex.Example{}},
		{columns, "{\"sector\": \"public\",\n\"income\": \"<=50K\", \"age\": 100}", true,
			convex.Example{Index: []int32{0, 2, 3}, Value: []float64{1, 1, 1}, Label: -1}},
		{columns, `{"age": 200, "sector": "public", "income": "<=50K"}`, true, convex.Example{Index: []int32{0, 2, 3},
			Value: []float64{1, 1, 1}, Label: -1}},
		{columns, `{"age": "old", "sector": "public", "income": "<=50K"}`, false, convex.Example{}},
		{columns, `{"age": 1, "age": 2, "sector": "public", "income": "<=50K"}`, false, convex.Example{}},
		{columns, `{"sector": "public", "income": "<=50K"}`, true, convex.Example{Index: []int32{0, 2, 3},
			Value: []float64{0, 1, 1}, Label: -1}},
		{columns, `{"age": null, "income": "<=50K"}`, true, convex.Example{Index: []int32{0, 3}, Value: []float64{0, 1},
			Label: -1}},
		{columns, `{"age": 1, "sector": "public"}`, false, convex.Example{}},
		{columns, `{"age": 1, "sector": "public", "income": "rich"}`, false, convex.Example{}},
		{columns, `{"age": {"years": 1}, "sector": "public", "income": "<=50K"}`, false, convex.Example{}},
		{columns, `{"age": 9007199254740992, "sector": "public", "income": "<=50K"}`, true, convex.Example{Index: []int32{0, 2, 3},
			Value: []float64{1, 1, 1}, Label: -1}},
		{columns, `{"age": 9007199254740993, "sector": "public", "income": "<=50K"}`, false, convex.Example{}},
		{columns, `{"age": 1, "id": 9007199254740993, "sector": "public", "income": "<=50K"}`, true,
			convex.Example{Index: []int32{0, 2, 3}, Value: []float64{-0.98, 1, 1}, Label: -1}},
		{vector, `{"value": [0, 0, 0, 9007199254740993], "label": 1}`, false, convex.Example{}},
		{vector, `{"value": [0, 0, 0, -1], "label": 9007199254740993}`, false, convex.Example{}},
		{vector, `{"value": [0, 0, 0, -1], "label": 1} {}`, false, convex.Example{}},
		{vector, `null`, false, convex.Example{}}, {columns, `null`, false, convex.Example{}},
		{columns, `"yes"`, false, convex.Example{}},
		{columns, `{}`, false, convex.Example{}},
	} {
		p := parserOf(t, test.task, 0)
		e, unfit := p.one([]Event{EventOf(test.event)})
		if (unfit == nil) != test.fits || (p.agreement.Valid(e) == nil) != test.fits {
			t.Errorf("%s: %v, want one that fits: %t", test.event, unfit, test.fits)
		}
		if test.fits && (e.Label != test.want.Label || !slices.Equal(e.Index, test.want.Index) ||
			!slices.Equal(e.Value, test.want.Value)) {
			t.Errorf("%s: mapped to %v %v %v, want %v %v %v", test.event, e.Index, e.Value, e.Label, test.want.Index,
				test.want.Value, test.want.Label)
		}
	}
}

// An event is one of JSON bytes, of text, and of a map, and the caller's memory is its own again.
func TestEventsOfAnyForm(t *testing.T) {
	p := parserOf(t, columns, 0)
	text := []byte(goodColumns)
	of := map[string]any{"age": 50, "sector": "public", "income": ">50K", "passed": []any{"over", nil}}
	events := map[string]Event{"bytes": EventOf(text), "text": EventOf(goodColumns), "a map": EventOf(of)}
	clear(text)
	clear(of)
	for name, event := range events {
		if e, unfit := p.one([]Event{event}); unfit != nil || e.Label != 1 || !slices.Equal(e.Value, []float64{0, 1, 1}) {
			t.Errorf("%s: %v, %v", name, e.Value, unfit)
		}
	}
	for name, event := range map[string]Event{
		"NaN":                  EventOf(map[string]any{"age": math.NaN(), "sector": "public", "income": ">50K"}),
		"a value without JSON": EventOf(map[string]any{"age": func() {}, "sector": "public", "income": ">50K"}),
		"a large number":       EventOf(map[string]any{"age": int64(1<<53 + 1), "sector": "public", "income": ">50K"}),
		"a nil map":            EventOf(map[string]any(nil)), "nil bytes": EventOf([]byte(nil)), "the zero Event": {},
	} {
		if e, unfit := p.one([]Event{event}); unfit == nil || p.agreement.Valid(e) == nil {
			t.Errorf("%s is an example of the task", name)
		}
	}
}

// Parsing never fails, and takes a decoy's work: of what does not fit a decoy is parsed and mapped beside it, and the
// local log says why, without the content, of the first few.
func TestParsingNeverFails(t *testing.T) {
	var log bytes.Buffer
	d := newDesk(nil, slog.New(slog.NewTextHandler(&log, nil)))
	p := parserOf(t, columns, 0)
	mapped, decoys := 0, 0
	p.onMap = func() { mapped++ }
	p.onParse = func(size int) {
		if size == len(p.decoy) {
			decoys++
		}
	}
	unfit := [][]Event{nil, {}, {EventOf(goodColumns), EventOf(goodColumns)}, {{}}}
	for _, event := range []string{`{"age": "yes", "sector": "public", "income": ">50K"}`,
		`{"age": 5, "sector": "secret", "income": "yes"}`,
		`{"age": 5, "sector": "public", "income": null}`, `{"age": 5, "sector": "public"}`, `null`, `"yes"`, `7`, `[]`, `{`,
		``, "\x00",
		`{"x": "` + strings.Repeat("secret", 20_000) + `"}`} {
		unfit = append(unfit, []Event{EventOf(event)})
	}
	for i, events := range unfit {
		b, err := p.block(events)
		if err == nil || len(b.Rows) != 1 || p.agreement.Valid(b.Rows[0]) == nil {
			t.Errorf("%d: %v, an example of the task", i, err)
			continue
		}
		d.note(err)
		if decoys != i+1 || mapped < i+1 {
			t.Errorf("%d: %d decoys are parsed and %d rows mapped, want %d and as many at least", i, decoys, mapped, i+1)
		}
	}
	if lines := strings.Count(log.String(), "sent as the zero vector"); lines != len(unfit) ||
		strings.Contains(log.String(), "secret") {
		t.Errorf("%d of %d are logged, or content: %s", lines, len(unfit), log.String())
	}
	for range 100 {
		d.note(errObject)
	}
	if lines := strings.Count(log.String(), "\n"); lines != maxUnfitLogged {
		t.Errorf("%d lines are logged, want %d", lines, maxUnfitLogged)
	}
}

// A person's events are parsed and mapped on a tick, in the time of as many as may be, whatever their number and
// whatever they are: never before the person is offered, and as many bytes for everybody.
func TestPeopleTakeTheSameWork(t *testing.T) {
	for _, declaration := range []string{vector, columns} {
		m := parserOf(t, declaration, 5)
		good := goodColumns
		if declaration == vector {
			good = goodVector
		}
		for given := range 8 {
			for name, event := range map[string]string{"valid": good, "broken": `{"age": [], "value": 7}`, "none": `7`,
				"large": `{"x": "` + strings.Repeat("x", int(m.most)) + `"}`} {
				parsed, mapped := 0, 0
				m.onMap, m.onParse = func() { mapped++ }, func(int) { parsed++ }
				events := slices.Repeat([]Event{EventOf(event)}, given)
				if parsed != 0 {
					t.Fatalf("%d %s events: %d are parsed before the tick", given, name, parsed)
				}
				out, err := m.person(events)
				if len(out) != min(given, 5) || mapped != 5 || (err == nil) != (name == "valid" || given == 0) {
					t.Errorf("of %d %s events %d enter, %d are mapped, %v; want 5 mapped", given, name, len(out), mapped, err)
				}
				if want := 5 + (int(m.most)-1)/len(m.decoy) + 1; parsed != want {
					t.Errorf("%d %s events: %d are parsed, decoys among them, want %d", given, name, parsed, want)
				}
			}
		}
	}
}

// What ticks are made for is the work of the largest event: as many bytes are parsed as of any that is taken.
func TestWorkIsThatOfTheLargestEvent(t *testing.T) {
	for _, declaration := range []string{vector, columns} {
		p := parserOf(t, declaration, 0)
		p.work()()
		sizes, largest := 0, 0
		p.onParse = func(size int) { sizes, largest = sizes+size, max(largest, size) }
		p.work()()
		work := sizes
		if declaration == columns && largest < p.agreement.Spec.Events.MaxLine-10 {
			t.Errorf("the largest decoy has %d bytes", largest)
		}
		if body := p.decoyBody(); int64(len(body)) != p.most {
			t.Errorf("the decoy's body has %d bytes, want %d", len(body), p.most)
		}
		for _, broken := range []string{`{"value": [1], "x": 1}`, `{"age": 1}`, `{`, ``,
			`{"x": "` + strings.Repeat("x", p.agreement.Spec.Events.MaxLine-10) + `"}`} {
			sizes = 0
			if _, err := p.one([]Event{EventOf(broken)}); err == nil || sizes > work {
				t.Errorf("%.60s: %d bytes, %v; the work is made for %d", broken, sizes, err, work)
			}
		}
	}
}

// Whatever is an event makes an example of the task or a reason, and no panic.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{goodColumns, goodVector,
		`{"index": [0, 3], "value": [1, -1], "label": "1"}`, `{"index": [2147483647], "value": [1e308], "label": {}}`, `{`,
		"{\n}", "\x1f\x8b", `[]`, `{"value": null, "label": null}`} {
		f.Add([]byte(seed))
	}
	parsers := []*parser{parserOf(f, columns, 0), parserOf(f, vector, 0), parserOf(f, columns, 2)}
	f.Fuzz(func(t *testing.T, event []byte) {
		for _, p := range parsers {
			b, unfit := p.block([]Event{EventOf(event)})
			for _, e := range b.Rows {
				if unfit == nil && p.agreement.Valid(e) != nil {
					t.Error("an example that is none of the task")
				}
			}
		}
	})
}
