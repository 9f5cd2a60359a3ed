package task

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/nodejs"
	"github.com/panlearn/panlearn/learner/convex"
)

// A question asks the device in TypeScript for rows of a task.
type question struct {
	Declaration json.RawMessage  `json:"declaration"`
	Public      string           `json:"public,omitempty"`
	Rows        []map[string]any `json:"rows"`
}

type answer struct {
	Refused string
	Bound   float64
	Rows    []*struct {
		X []float64
		Y float64
	}
}

// drawWild draws texts that are hardly rows.
func drawWild(t *rapid.T, s *Spec) Row {
	row := drawRow(t, s, false)
	for i := range row.Fields {
		if rapid.IntRange(0, 3).Draw(t, "wild field") == 0 {
			row.Fields[i] = rapid.OneOf(rapid.SampledFrom([]string{"+1.5e3", "1_000", "0x10", "Infinity", "-inf", "nan", "+NaN", ".5", "5.", "1e400",
				"-1e-400", " 7 ", "\u00a07", "\u00857", "\ufeff7", "7\u2028", "1,234", "$ 5", "--1", "1e", "2024-02-30", "0001-01-01", "2024-1-1",
				"2024-02-29T24:00", "2024-02-29 23:59:60", "true", "\u0130stanbul", "ſ", "ǅ", "e\u0301"}), rapid.String()).Draw(t, "wild text")
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "wild label") == 0 {
		row.Label = rapid.OneOf(rapid.SampledFrom([]string{"1.0", "+1", "01", "1e0", " 1 ", "-0", "0", "", ">50K ", "two", "3.", "\u00a03",
			"NaN", "1e999"}), rapid.String()).Draw(t, "label")
	}
	return row
}

// TestRowsInTypeScript: of random tasks and rows both devices make the same vectors, to 1e-12, or none.
func TestRowsInTypeScript(t *testing.T) {
	tasks := 60
	if longtest.Run(t, "2,500 tasks of 4 rows each instead of 60") {
		tasks = 2500
	}
	type drawn struct {
		spec *Spec
		rows []Row
	}
	draw := rapid.Custom(func(t *rapid.T) drawn {
		d := drawn{spec: drawSpec(t)}
		for i := range 4 {
			if i < 2 {
				d.rows = append(d.rows, drawRow(t, d.spec, i == 0))
			} else {
				d.rows = append(d.rows, drawWild(t, d.spec))
			}
		}
		return d
	})
	var all []drawn
	var asked []question
	for i := range tasks {
		d := draw.Example(i + 1)
		declaration, err := d.spec.Canonical()
		if err != nil {
			t.Fatalf("task %d: %v", i, err)
		}
		q := question{Declaration: declaration, Public: hex.EncodeToString(d.spec.Features.Public.Data())}
		schema := d.spec.Schema()
		for _, r := range d.rows {
			event := map[string]any{}
			label := "label"
			if d.spec.Features.Vector != nil {
				event["index"], event["value"] = append([]int32{}, r.Index...), append([]float64{}, r.Value...)
			} else {
				for j, name := range schema.Columns {
					event[name] = r.Fields[j]
				}
				label = d.spec.Label.Column
			}
			event[label] = r.Label
			q.Rows = append(q.Rows, event)
		}
		all, asked = append(all, d), append(asked, q)
	}
	same := func(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-12*math.Max(1, math.Abs(b)) }
	wrong := 0
	for i, got := range nodejs.Answers[question, answer](t, asked) {
		m, err := all[i].spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if got.Refused != "" || !same(got.Bound, m.Longest()) {
			t.Errorf("task %d: %q, bound %v: want %v\n%s", i, got.Refused, got.Bound, m.Longest(), asked[i].Declaration)
			wrong++
			continue
		}
		for j, r := range all[i].rows {
			var x convex.Example
			var want []float64
			if m.Map(r, &x) == nil {
				want = make([]float64, m.Dim())
				x.AddTo(want, 1)
			}
			row := got.Rows[j]
			ok := (row == nil) == (want == nil)
			if ok && row != nil {
				ok = len(row.X) == len(want) && same(row.Y, x.Label)
				for k := range want {
					ok = ok && same(row.X[k], want[k])
				}
			}
			if !ok {
				text, _ := json.Marshal(asked[i].Rows[j])
				t.Errorf("task %d, row %d: %+v, want %v, %v\n%s\n%s", i, j, row, want, x.Label, text, asked[i].Declaration)
				wrong++
			}
		}
		if wrong > 5 {
			t.FailNow()
		}
	}
}
