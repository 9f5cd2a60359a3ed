package source

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	library "github.com/parquet-go/parquet-go"

	"github.com/panlearn/panlearn/internal/test/parquettest"
)

func check(t *testing.T, got, want []outcome) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%v, want\n%v", got, want)
	}
}

func TestCSV(t *testing.T) {
	data := "\ufeffy,age,other,job\r\n" +
		"1,30,x,a\r\n" +
		"\r\n" +
		`0, 40 , "", "b, c" ` + "\n" +
		"0,50,x\n" + // too few
		`1,60,,"say ""x"""` + "\n" +
		`1,60,,"open` + "\n" +
		`1,60,,"a"b` + "\n" +
		`1,60,,a"b` + "\n" +
		"1,60,," + strings.Repeat("z", 100) + "\n" +
		"0,70,x,a" // no end of line
	check(t, outcomes(t, open(t, compile(t, csvTask), data)), []outcome{
		{2, 1, "30|a|1"},
		{4, 3, "40|b, c|0"},
		{5, 4, "bad "},
		{6, 5, `60|say "x"|1`},
		{7, 6, "bad "},
		{8, 7, "bad "},
		{9, 8, "bad "},
		{10, 9, "bad "},
		{11, 10, "70|a|0"},
	})
}

func TestCSVByPosition(t *testing.T) {
	m := compile(t, csvTask, "events.header=false", "events.columns=[job, y, age]", "events.separator=;",
		"events.skip_lines=2")
	check(t, outcomes(t, open(t, m, "| junk\n\n\na;1;3\n# more\n ;0; 4\n")), []outcome{{4, 3, "3|a|1"}, {5, 4, "bad "},
		{6, 5, "4||0"}})
	m = compile(t, csvTask, "events.header=false", "events.columns=[job, y, age]", `events.separator="\t"`)
	check(t, outcomes(t, open(t, m, "a\t1\t 3\n\t0\t4\n")), []outcome{{1, 0, "3|a|1"}, {2, 1, "4||0"}})
}

func TestJSONL(t *testing.T) {
	data := `{"age": 30, "job": "a", "y": 1}` + "\n" +
		`{"extra": {"age": [1, {"y": 2}]}, "job": true, "y": "0", "age": "4.5e1", "more": [null]}` + "\n\n" +
		`{"age": 30, "job": "a"}` + "\n" +
		`{"age": 30, "age": 31, "job": "a", "y": 1}` + "\n" +
		`{"age": null, "job": "a", "y": 1}` + "\n" +
		`{"age": [3], "job": "a", "y": 1}` + "\n" +
		`[1]` + "\n" +
		`{"age": 30, "job": "a", "y": 1} {}` + "\n" +
		`{"age": 30, "job": "a", "y": 1` + "\n" +
		`{"age": 30, "job": "a", "y": 01}` + "\n" +
		`{"y": 1, "age": 1, "job": "\u0061"}` + "\n" +
		`{"y": 1, "job": null}` + "\n" +
		`{"age": 1, "job": "a", "y": null}`
	check(t, outcomes(t, open(t, compile(t, jsonTask), data)), []outcome{
		{1, 0, "30|a|1"},
		{2, 1, "4.5e1|true|0"},
		{4, 3, "bad y"},
		{5, 4, "bad age"},
		{6, 5, "|a|1"},
		{7, 6, "bad age"},
		{8, 7, "bad "},
		{9, 8, "bad "},
		{10, 9, "bad "},
		{11, 10, "bad "},
		{12, 11, "1|a|1"},
		{13, 12, "||1"},
		{14, 13, "bad y"},
	})
}

// TestNestedJSON: a column with dots in its name is a member of an object in the row, or a key that is called so, and
// not both; what else is in the object is passed over.
func TestNestedJSON(t *testing.T) {
	m := compile(t, strings.NewReplacer("column: age", `column: "who.age"`, "column: job", `column: "who.work.job"`,
		`column: "y"`, `column: "out.y"`).Replace(jsonTask))
	data := `{"who": {"age": 30, "work": {"job": "a", "since": {"job": 3}}}, "out": {"y": 1}}` + "\n" +
		`{"who.age": 30, "who.work.job": "a", "out": {"y": 1}, "age": 4, "job": [5]}` + "\n" +
		`{"who": {"age": 31, "work.job": "a"}, "who.work": {"job": "b"}, "out.y": 0}` + "\n" +
		`{"who": {"age": 30}, "out": {"y": 1}, "who": {"age": 31}}` + "\n" +
		`{"who": null, "out": {"y": 1}}` + "\n" +
		`{"who": [{"age": 30}], "out": {"y": 1}}` + "\n" +
		`{"who": {"age": {"b": 1}, "work": 7}, "out": {"y": 1}}` + "\n" +
		`{"\u0077ho": {"age": 30}, "out": {"y": 1}}` + "\n" +
		`{"who": {"age": 30}, "out": 1}`
	check(t, outcomes(t, open(t, m, data)), []outcome{
		{1, 0, "30|a|1"}, {2, 1, "30|a|1"}, {3, 2, "bad who.work.job"}, {4, 3, "bad who.age"}, {5, 4, "||1"}, {6, 5, "||1"},
		{7, 6, "bad who.age"}, {8, 7, "30||1"}, {9, 8, "bad out.y"},
	})
	// an object and a member of it
	both := compile(t, strings.ReplaceAll(jsonTask, "column: job", `column: "age.of"`))
	check(t, outcomes(t, open(t, both, `{"age": {"of": "a"}, "y": 1}`+"\n"+`{"age": 3, "age.of": "a", "y": 1}`)),
		[]outcome{{1, 0, "|a|1"}, {2, 1, "3|a|1"}})
}

func TestLIBSVM(t *testing.T) {
	data := "\n+1 1:0.5 5:-2e0  \n-1\n1 2:1 # 3:1\n1 2:1 2:1\n1 0:1\n1 6:1\n1 a:1\n1 1:x\n1 1:0x1p4\n1 1\n#\n1 1:1\n"
	r := open(t, compile(t, svmTask), data)
	var got []string
	for row, err := range r.All() {
		if err != nil {
			got = append(got, fmt.Sprintf("%d bad", row.Line))
			continue
		}
		if row.Index == nil {
			t.Errorf("line %d: a sparse row without index is dense", row.Line)
		}
		got = append(got, fmt.Sprintf("%d %s %v %v", row.Line, row.Label, row.Index, row.Value))
	}
	want := []string{
		"2 +1 [0 4] [0.5 -2]", "3 -1 [] []", "4 1 [1] [1]", "5 bad", "6 bad", "7 bad", "8 bad", "9 bad", "10 bad", "11 bad",
		"12 bad",
		"13 1 [0] [1]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

// TestLineLimit: a line may be exactly as long as the limit, whatever ends it.
func TestLineLimit(t *testing.T) {
	m := compile(t, svmTask, "events.max_line=8")
	for _, end := range []string{"\n", "\r\n", ""} {
		check(t, outcomes(t, open(t, m, "1 1:1\n1 1:1234"+end)), []outcome{{1, 0, "1"}, {2, 1, "1"}})
		check(t, outcomes(t, open(t, m, "1 1:1\n1 1:12345"+end)), []outcome{{1, 0, "1"}, {2, 1, "bad "}})
	}
	long := strings.Repeat("1", 1<<20)
	check(t, outcomes(t, open(t, m, "1 1:1\n"+long+"\n1 1:1\n")), []outcome{{1, 0, "1"}, {2, 1, "bad "}, {3, 2, "1"}})
}

// TestEmpty: events without any row are not an error: nothing has come yet.
func TestEmpty(t *testing.T) {
	for file, data := range map[string]string{svmTask: "", jsonTask: "\n\n", csvTask: "age,job,y\n"} {
		if got := outcomes(t, open(t, compile(t, file), data)); len(got) != 0 {
			t.Errorf("got %v from nothing", got)
		}
	}
}

// TestErrorsKeepContentsBack: row errors name the position only.
func TestErrorsKeepContentsBack(t *testing.T) {
	const secret = "s3cr3t"
	for file, lines := range map[string][]string{
		svmTask: {"1 1:1", "1 " + secret, "1 1:" + secret, "1 " + secret + ":1"},
		csvTask: {"age,job,y\n1,a,1", secret, `"` + secret, `1,x"` + secret + `,1`},
		jsonTask: {`{"age":1,"job":"a","y":1}`, secret, `{"` + secret, `{"age":{"` + secret + `":1}}`, `{"age":"` + secret +
			`"`},
	} {
		for row, err := range open(t, compile(t, file), strings.Join(lines, "\n")).All() {
			if (err == nil) != (row.Fields != nil || row.Value != nil || row.Label != "") ||
				(err != nil && strings.Contains(err.Error(), secret)) {
				t.Errorf("row %d: %v", row.Number, err)
			}
			if s := fmt.Sprintf("%+v", row); s != "task.Row{redacted}" {
				t.Errorf("a row prints %s", s)
			}
			if s, err := json.Marshal(row); err != nil || string(s) != `"task.Row{redacted}"` {
				t.Errorf("a row is %s in JSON: %v", s, err)
			}
		}
	}
}

// TestLongMembersAreCheap: members of a row that nobody asked for, however many, cost no more than finding
// their end, or rows after it would come late.
func TestLongMembersAreCheap(t *testing.T) {
	m := compile(t, jsonTask, "events.max_line=65536")
	for _, value := range []string{"[" + strings.Repeat("1,", 30_000) + "1]", `"` + strings.Repeat("x", 60_000) + `"`,
		strings.Repeat("1", 60_000),
		"[" + strings.Repeat(`{"a":0},`, 7_000) + "1]", "1" + strings.Repeat(`,"x":0`, 10_000),
		"1" + strings.Repeat(`,"\n\u00e9\ud834\udd1e":0`, 2000)} {
		line := `{"a":` + value + `,"age":1,"y":1}` + "\n"
		allocations := testing.AllocsPerRun(3, func() {
			r, err := New(strings.NewReader(line), m)
			if err == nil {
				_, err = r.Next()
			}
			if err != nil {
				t.Error(err)
			}
		})
		if allocations > 200 {
			t.Errorf("%.10s: %v allocations", value, allocations)
		}
	}
}

// TestMarksInEveryFormat: numbers with marks are texts in csv, jsonl and Parquet, and read alike.
func TestMarksInEveryFormat(t *testing.T) {
	const file = `
version: 1
name: demo
events: {format: csv, header: true}
features: {columns: [{column: pay, kind: numeric, max: 2000, scale: raw, marks: [$, ","]}]}
label: {column: price, max: 100, scale: raw, marks: ["%"]}
model: {loss: squared, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000}
`
	data, err := parquettest.Encode([]parquettest.Column{{Name: "pay"}, {Name: "price"}},
		[][]any{{"$1,234.5", "45%"}, {"12", "3"}})
	if err != nil {
		t.Fatal(err)
	}
	for format, data := range map[string][]byte{
		"csv":     []byte("pay,price\n\"$1,234.5\",45%\n12,3\n"),
		"jsonl":   []byte(`{"pay":"$1,234.5","price":"45%"}` + "\n" + `{"pay":12,"price":3}`),
		"parquet": data,
	} {
		sets := []string{"events={format: " + format + "}"}
		if format == "csv" {
			sets = nil
		}
		m := compile(t, file, sets...)
		got := examplesOf(t, write(t, data), m)
		if len(got) != 2 || !slices.Equal(dense(got[0], 2), []float64{1234.5, 1}) || got[0].Label != 45 ||
			!slices.Equal(dense(got[1], 2), []float64{12, 1}) || got[1].Label != 3 {
			t.Errorf("%s: %+v", format, got)
		}
	}
}

// TestDatesInEveryFormat: dates and timestamps of Parquet are read as the text of csv and jsonl.
func TestDatesInEveryFormat(t *testing.T) {
	const file = `
version: 1
name: demo
events: {format: csv, header: true}
features:
  columns:
    - {column: hour, field: at, part: hour, kind: numeric, scale: raw, max: 24}
    - {column: year, field: on, part: year, kind: numeric, scale: raw, max: 9999}
label: {column: price, max: 100, scale: raw}
model: {loss: squared, radius: 5}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 1000}
`
	files := map[string][][]byte{
		"csv":   {[]byte("at,on,price\n2024-03-01T13:30:00,1969-12-31,1\n,,2\n")},
		"jsonl": {[]byte(`{"at":"2024-03-01T13:30:00","on":"1969-12-31","price":1}` + "\n" + `{"on":null,"price":2}`)},
	}
	at := time.Date(2024, 3, 1, 13, 30, 0, 0, time.UTC)
	for unit, value := range map[library.TimeUnit]int64{library.Millisecond: at.UnixMilli(),
		library.Microsecond: at.UnixMicro(), library.Nanosecond: at.UnixNano()} {
		data, err := parquettest.Encode([]parquettest.Column{{Name: "at", Node: library.Optional(library.Timestamp(unit))},
			{Name: "on", Node: library.Optional(library.Date())}, {Name: "price"}},
			[][]any{{value, int32(-1), 1.0}, {nil, nil, 2.0}})
		if err != nil {
			t.Fatal(err)
		}
		files["parquet"] = append(files["parquet"], data)
	}
	for format, list := range files {
		sets := []string{"events={format: " + format + "}"}
		if format == "csv" {
			sets = nil
		}
		for _, data := range list {
			got := examplesOf(t, write(t, data), compile(t, file, sets...))
			if len(got) != 2 || !slices.Equal(dense(got[0], 3), []float64{13.5, 1969, 1}) ||
				!slices.Equal(dense(got[1], 3), []float64{12, 4999.5, 1}) {
				t.Errorf("%s: %+v", format, got)
			}
		}
	}
}
