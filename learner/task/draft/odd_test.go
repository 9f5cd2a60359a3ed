package draft

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/parquettest"
	"github.com/panlearn/panlearn/learner/task"
)

// plainRows returns fifty rows that nothing is wrong with.
func plainRows(separator, end string) string {
	var b strings.Builder
	for i := range 50 {
		fmt.Fprintf(&b, "%s%s%d%s%s%s", wave(i), separator, i*7%11, separator, [...]string{"up", "down"}[i*5%7%2], end)
	}
	return b.String()
}

// TestOddFiles checks that files of newcomers are read, with the right words in the task file, or refused with
// advice.
func TestOddFiles(t *testing.T) {
	header := "height,age,course\n"
	for name, c := range map[string]struct {
		content string
		options Options
		want    string // in the file
		refused string // in the error, instead
	}{
		"plain.csv":     {content: header + plainRows(",", "\n"), want: "positive: [down]"},
		"empty.csv":     {content: "", refused: "no lines"},
		"blank.csv":     {content: "\n\r\n\n", refused: "no lines"},
		"header.csv":    {content: header, refused: "no rows: a header and nothing below it"},
		"onecolumn.csv": {content: "height\n1\n2\n", refused: "one column"},
		"bom.csv":       {content: "\xef\xbb\xbf" + header + plainRows(",", "\n"), want: "{column: height, kind: numeric"},
		"crlf.csv": {content: "height,age,course\r\n" + plainRows(",", "\r\n"),
			want: "label: {column: course, positive: [down], negative: [up]}"},
		"tab.tsv":       {content: plainRows("\t", "\n"), want: `separator: "\t", columns: [c1, c2, c3]`},
		"pipe.csv":      {content: plainRows("|", "\n"), want: `separator: "|"`},
		"semicolon.csv": {content: "height;age;course\n" + plainRows(";", "\n"), want: `separator: ";"`},
		"comma.csv": {content: strings.ReplaceAll("height;age;course\n"+plainRows(";", "\n"), ".", ","),
			refused: `column "height" has decimal commas`},
		"commalabel.csv": {content: strings.ReplaceAll("height;age;course\n"+plainRows(";", "\n"), ".", ","),
			options: Options{Label: "height"}, refused: "decimal commas"},
		"quoted.csv": {content: strings.ReplaceAll(header+plainRows(",", "\n"), "up", `"up, ""or"" so"`),
			want: `"up, \"or\" so"`},
		"blanks.txt": {content: plainRows(" ", "\n"), refused: "fields that only blanks separate"},
		"twice.csv": {content: "height,height,age,course\n" + strings.ReplaceAll(plainRows(",", "\n"), ",", ",9,"),
			refused: "fields"},
		"twins.csv": {content: "age,age,course\n" + plainRows(",", "\n"), refused: "one column"},
		"unnamed.csv": {content: ",height,course\n" + plainRows(",", "\n"),
			want: "# Left out: \"column 1\", it has no name."},
		"latin.csv": {content: header + strings.ReplaceAll(plainRows(",", "\n"), "up", "h\xf6her"),
			refused: "label course is not UTF-8"},
		"latinheader.csv": {content: "h\xf6he,age,course\n" + plainRows(",", "\n"), refused: "header that is not UTF-8"},
		"utf16.csv":       {content: "\xff\xfeh\x00e\x00\n\x00", refused: "UTF-16"},
		"binary.csv":      {content: "a,b\x00c\n", refused: "not text"},
		"onevalue.csv": {content: header + strings.ReplaceAll(plainRows(",", "\n"), "down", "up"),
			refused: "label course has 1 value"},
		"allmissing.csv": {content: header + strings.ReplaceAll(plainRows(",", "\n"), ",up", ",NA") + plainRows(",", "\n"),
			want: "rows of the sample have no label"},
		"nolabel.csv": {content: header + plainRows(",", "\n"), options: Options{Label: "sex"},
			refused: `label "sex": not a column; want one of height, age, course`},
		"longer.csv": {content: header + strings.ReplaceAll(plainRows(",", "\n"), "0.00", strings.Repeat("x", 70000)),
			want: "1 row could not be read, the first in line 2"},
		"list.json":    {content: `[{"a": 1}]`, refused: "one JSON object a line"},
		"broken.jsonl": {content: "{a\n", refused: "lines that begin like JSON"},
		"images.idx":   {content: "\x00\x00\x08\x03\x00", refused: "IDX"},
		"numbers.csv":  {content: "0,1,2\n" + plainRows(",", "\n"), want: `header: true`},
		"skip.csv":     {content: "# made by hand\n" + header + plainRows(",", "\n"), want: "skip_lines: 1"},
		"rownames.csv": {content: "height,course\n" + plainRows(",", "\n"),
			refused: "the first line has 2 fields and the others 3"},
		"words.csv": {content: lines("word,y", 20000, func(i int) string {
			return fmt.Sprintf("w%d,%d", i%10000,
				i%2)
		}), refused: "10000 words, of which 0 cover too few rows"},
		"wordlabel.csv": {content: lines("x,y", 300, func(i int) string { return fmt.Sprintf("%s,w%d", wave(i), i%100) }),
			refused: "100 different words"},
		"loss.csv": {content: header + plainRows(",", "\n"), options: Options{Label: "age", Loss: "poisson"},
			want: "loss: poisson, score_bound: 3"},
		"badloss.csv": {content: header + plainRows(",", "\n"), options: Options{Loss: "poison"},
			refused: "want one of logistic"},
		"losslabel.csv": {content: header + plainRows(",", "\n"), options: Options{Loss: "squared"},
			refused: "holds words, want numbers"},
		"quantile.csv": {content: header + plainRows(",", "\n"), options: Options{Label: "height", Loss: "quantile",
			Users: 5000}, want: "users: 5000"},
		"a file & more.gz": {content: header + plainRows(",", "\n"), want: "name: a-file-more"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, name, c.content)
			if c.refused != "" {
				d, err := FromSample(path, c.options)
				if err == nil {
					t.Fatalf("a task:\n%s", d.Task)
				}
				if !strings.Contains(err.Error(), c.refused) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v; want %q", err, c.refused)
				}
				return
			}
			_, file, valid, rows := draft(t, path, c.options)
			if !strings.Contains(file, c.want) {
				t.Errorf("no %q in\n%s", c.want, file)
			}
			if valid < rows-1 && name != "allmissing.csv" {
				t.Errorf("%d of %d rows are valid", valid, rows)
			}
		})
	}
}

// TestFormats: the same table gives the same features in every format.
func TestFormats(t *testing.T) {
	var jsonl, libsvm strings.Builder
	var events [][]any
	for i := range 50 {
		x, _ := number(wave(i))
		age, word := int64(i*7%11), [...]string{"up", "down"}[i*5%7%2]
		fmt.Fprintf(&libsvm, "%d 1:%s 3:%d\n", i*5%7%2, wave(i), age)
		if i%5 == 0 { // a key that is not there, and a null
			fmt.Fprintf(&jsonl, `{"height": %s, "deep": [1], "course": %q}`+"\n", wave(i), word)
			events = append(events, []any{x, nil, word})
		} else {
			fmt.Fprintf(&jsonl, `{"height": %s, "deep": [], "age": %d, "course": %q}`+"\n", wave(i), age, word)
			events = append(events, []any{x, age, word})
		}
	}
	encoded, err := parquettest.Encode([]parquettest.Column{{Name: "height"}, {Name: "age"}, {Name: "course"}}, events)
	if err != nil {
		t.Fatal(err)
	}
	features := func(file string) []string { // columns of parquet are in another order
		_, out, _ := strings.Cut(file, "features:\n")
		return slices.Sorted(strings.Lines(strings.Replace(out, "    # Left out: deep, not a single value in every row.\n",
			"", 1)))
	}
	_, fromJSON, valid, _ := draft(t, write(t, "f.jsonl", jsonl.String()), Options{Label: "course"})
	if !strings.Contains(fromJSON, "missing: {fill: 5, indicator: true}") ||
		!strings.Contains(fromJSON, "# Left out: deep, not a single value") || valid != 50 {
		t.Errorf("%d rows valid of jsonl:\n%s", valid, fromJSON)
	}
	_, fromParquet, valid, _ := draft(t, write(t, "f.parquet", string(encoded)), Options{Label: "course"})
	if !slices.Equal(features(fromParquet), features(fromJSON)) || valid != 50 {
		t.Errorf("%d rows valid of parquet:\n%s", valid, fromParquet)
	}
	_, fromLIBSVM, valid, _ := draft(t, write(t, "f.txt", libsvm.String()), Options{})
	if !strings.Contains(fromLIBSVM, "{dimension: 3, min: 0, max: 10, scale: unit, max_nonzeros: 2}") || valid != 50 {
		t.Errorf("%d rows valid of libsvm:\n%s", valid, fromLIBSVM)
	}
}

// TestOutward: bounds hold the values, and are not much wider than they.
func TestOutward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-1e12, 1e12).Draw(t, "low")
		high := low + rapid.OneOf(rapid.Float64Range(0, 1e12), rapid.Float64Range(0, 1e-6)).Draw(t, "span")
		whole := rapid.Bool().Draw(t, "whole")
		b := outward(low, high, whole)
		if room := max((high-low)/steps*2.5, math.Abs(high)*1e-9, math.Abs(low)*1e-9, 1); b.low > low || b.high < high ||
			b.low >= b.high || high > low && (low-b.low > room || b.high-high > room) {
			t.Fatalf("[%v, %v] is rounded to [%v, %v]", low, high, b.low, b.high)
		}
	})
	for want, c := range map[interval][2]float64{{0, 1000, 50}: {1, 977}, {0, 1, 0.05}: {0.02, 1},
		{-0.3, 0.1, 0.02}: {-0.29, 0.09}, {15, 90, 5}: {17, 90}} {
		if got := outward(c[0], c[1], false); got != want {
			t.Errorf("%v: %v, want %v", c, got, want)
		}
	}
}

// TestTextsAreReadAsWritten checks that the task file repeats words exactly, whatever they are.
func TestTextsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"no", "~", "null", "1e3", "0x1", "-", "a: b", "a #b",
			"é", "'", `"`, "[", "*x", "&x", "%", "@", "<<", ".inf", "1_000", "2024-01-01"})).
			Filter(func(s string) bool { return s != "" && strings.TrimSpace(s) == s && s != "*" }).Draw(t, "word")
		file := fmt.Sprintf(
			"version: 1\nname: t\nevents: {format: jsonl}\nfeatures:\n  columns:\n    - {column: x, kind: categorical, vocabulary: %s, unknown: drop}\n"+
				"label: {column: l, positive: [a], negative: [b]}\nmodel: {loss: logistic, radius: 1}\nprivacy: {epsilon: 1, delta: 1e-6}\nschedule: {users: 1000}\n", texts([]string{word}))
		spec, err := task.Parse([]byte(file), nil)
		if err != nil || spec.Features.Columns[0].Vocabulary[0] != word {
			t.Fatalf("%q is written as %s: %v", word, text(word), err)
		}
	})
}

// TestPublicData: on public data: the task is accepted and nearly all rows fit it.
func TestPublicData(t *testing.T) {
	folder := os.Getenv("PANLEARN_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "..", "shared", "data")
	} else if !filepath.IsAbs(folder) {
		folder = filepath.Join("..", "..", "..", folder)
	}
	if _, err := os.Stat(folder); err != nil {
		fmt.Fprintf(os.Stderr, "NOT RUN: %s: no public data sets at %s; set PANLEARN_DATA\n", t.Name(), folder)
		t.SkipNow()
	}
	for name, loss := range map[string]string{
		"adult/adult.data.gz": "logistic", "adult/adult.test.gz": "logistic", "a9a/a9a.gz": "logistic",
		"agaricus/agaricus.txt.train.gz": "logistic",
		"agaricus/agaricus.txt.test":     "logistic", "bike_sharing/hour.csv.gz": "squared",
		"bike_sharing/day.csv":    "squared",
		"elec/elec.csv.gz":        "logistic",
		"insurance/insurance.csv": "squared", "obesity/ObesityDataSet_raw_and_data_sinthetic.csv": "softmax",
		"power_plant/data.txt.gz":   "squared",
		"spambase/spambase.data.gz": "logistic", "wine_quality/winequality-red.csv": "softmax",
		"wine_quality/winequality-white.csv": "softmax",
		"kddcup99/kddcup.data_10_percent.gz": "softmax",
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "kdd") && !longtest.Run(t, "half a million rows") {
				t.SkipNow()
			}
			spec, _, valid, rows := draft(t, filepath.Join(folder, name), Options{})
			if spec.Model.Loss != loss || valid < rows-rows/100 {
				t.Errorf("loss %s, want %s; %d of %d rows are valid", spec.Model.Loss, loss, valid, rows)
			}
		})
	}
}

// TestNestedColumns: members of objects become columns under names with dots, as they are read, and lists do not.
func TestNestedColumns(t *testing.T) {
	var rows strings.Builder
	for i := range 60 {
		fmt.Fprintf(&rows, `{"who": {"age": %d, "tags": ["a"], "home": {"rooms": %d}}, "y": "%c"}`+"\n", 20+i*i%37, i%5,
			'a'+i%2)
	}
	path := write(t, "nested.jsonl", rows.String())
	d, err := FromSample(path, Options{Label: "y"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`column: who.age,`, `column: who.home.rooms,`, `Left out: who.tags`} {
		if !strings.Contains(string(d.Task), want) {
			t.Errorf("no %s in\n%s", want, d.Task)
		}
	}
}
