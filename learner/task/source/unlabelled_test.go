package source

import (
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/test/parquettest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// TestUnlabelled: events that are to be scored may be without labels, in every format; with labels, also with ones that
// do not fit, they are the same.
func TestUnlabelled(t *testing.T) {
	table := func(columns ...string) []byte {
		var list []parquettest.Column
		for _, c := range columns {
			list = append(list, parquettest.Column{Name: c})
		}
		rows := [][]any{{int64(50), "a"}, {int64(100), "b"}}
		if len(columns) == 3 {
			rows = [][]any{{int64(50), "a", int64(9)}, {int64(100), "b", nil}}
		}
		data, err := parquettest.Encode(list, rows)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	images, labels := idxFiles([]byte{0, 51, 255, 102, 255, 255, 255, 255}, []byte{1, 200})
	csv := [][]float64{{0, 1, 0, 0, 1}, {1, 0, 0, 0, 1}} // age 50 and 100, the first with job a; and the intercept
	jsonl := [][]float64{{0, 1, 0, 1}, {1, 0, 0, 1}}     // of a shorter vocabulary
	vector := [][]float64{{3, 0, -2, 0, 0, 1}, {0, 0, 0, 4, 0, 1}}
	pixels := [][]float64{{0, 0.2, 1, 0.4, 1}, {1, 1, 1, 1, 1}}
	var tried []task.Format
	headless := []string{"events.header=false", "events.columns=[age, y, job]"}
	for name, c := range map[string]struct {
		file string
		sets []string
		data []byte
		want [][]float64
	}{
		"csv":                      {csvTask, nil, []byte("job,age\na,50\nb,100\n"), csv},
		"csv with labels":          {csvTask, nil, []byte("job,y,age\na,1,50\nb,?,100\n"), csv},
		"csv, no header":           {csvTask, headless, []byte("50,a\n100,b\n"), csv},
		"csv, no header, labelled": {csvTask, headless, []byte("50,1,a\n100,,b\n"), csv},
		"jsonl": {jsonTask, nil, []byte(`{"age":50,"job":"a"}` + "\n" + `{"age":100,"job":"b","y":[1]}` +
			"\n"), jsonl},
		"jsonl with labels": {jsonTask, nil, []byte(`{"age":50,"job":"a","y":1}` + "\n" +
			`{"age":100,"job":"b","y":"?"}` + "\n"), jsonl},
		"libsvm":             {svmTask, nil, []byte("1:3 3:-2\n4:4\n"), vector},
		"libsvm with labels": {svmTask, nil, []byte("1 1:3 3:-2\n? 4:4\n"), vector},
		"parquet": {csvTask, []string{"events.format=parquet", "events.header=false"}, table("age", "job"),
			csv},
		"parquet with labels": {csvTask, []string{"events.format=parquet", "events.header=false"},
			table("age", "job", "y"), csv},
		"idx": {idxTask, nil, images, pixels},
	} {
		t.Run(name, func(t *testing.T) {
			labelled := compile(t, c.file, c.sets...)
			m := labelled.Unlabelled()
			tried = append(tried, m.Schema().Events.Format)
			if labelled.Schema().Unlabelled || !m.Schema().Unlabelled {
				t.Fatal("the map itself was changed")
			}
			var got [][]float64
			for _, e := range examplesOf(t, write(t, c.data), m) {
				got = append(got, dense(e, m.Dim()))
			}
			if !slices.EqualFunc(got, c.want, slices.Equal) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	wantFormats(t, tried)
	m := compile(t, idxTask).Unlabelled()
	if got := examplesOf(t, write(t, images)+","+write(t, labels), m); len(got) != 2 {
		t.Errorf("images and labels: %d events", len(got))
	}
	// Each line tells by itself whether it has a label: a damaged line decides nothing about the others.
	r := open(t, compile(t, csvTask, headless...).Unlabelled(), "50\n50,1,a\n100,b\n1,2,3,4\n60,0,b\n")
	want := []outcome{{1, 0, "bad "}, {2, 1, "50|a|1"}, {3, 2, "100|b|"}, {4, 3, "bad "}, {5, 4, "60|b|0"}}
	if got := outcomes(t, r); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var e convex.Example
	if err := m.Map(task.Row{Value: []float64{1, 2}}, &e); err == nil {
		t.Error("without labels, vectors of any length fit")
	}
}
