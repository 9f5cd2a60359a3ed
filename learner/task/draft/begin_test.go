package draft

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

// besideFiles are options under which a task may begin with a public model.
func besideFiles(users int) Options {
	return Options{Users: users, Public: "t-public.json", Start: "t-start.json"}
}

// crooked makes rows whose label depends on a product, a word and a skewed number with gaps: labels of two classes, of
// four, or numbers.
func crooked(n int, label string) string {
	r := rand.New(rand.NewPCG(4, 4))
	return lines("a,b,money,town,code,when,fee,y", n, func(int) string {
		a, b, town, code := r.NormFloat64(), r.NormFloat64(), r.IntN(4), r.IntN(5)
		money := 0.0
		if r.IntN(2) == 0 {
			money = 1000 * math.Exp(r.NormFloat64())
		}
		score := 2*a*b/(1+math.Abs(a*b)) + float64(town)/2 - math.Log1p(money)/8 - 0.5
		y := fmt.Sprintf("%.3f", 100+30*score+r.NormFloat64())
		switch label {
		case "two":
			y = [...]string{"no", "yes"}[indicate(r.Float64() < 1/(1+math.Exp(-3*score)))]
		case "four":
			y = [...]string{"low", "middling", "high", "top"}[min(max(int(score+1.5+r.NormFloat64()/4), 0), 3)]
		}
		cash := fmt.Sprintf("%.0f", money)
		if r.IntN(20) == 0 {
			cash = "?"
		}
		return fmt.Sprintf("%.3f,%.3f,%s,%s,%d,2024-%02d-%02d,$%.2f,%s", a, b, cash,
			[...]string{"Ayr", "Bex", "Cham", "Diez"}[town], code, 1+r.IntN(12), 1+r.IntN(28), 20*r.Float64(), y)
	})
}

func indicate(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestOddColumnsBegin: whatever columns hold, such as numbers beyond those of 32 bits, a task is drafted that begins
// with them.
func TestOddColumnsBegin(t *testing.T) {
	kinds := []func(r *rand.Rand) string{
		func(r *rand.Rand) string { return fmt.Sprintf("%g", r.NormFloat64()*1e80) },
		func(r *rand.Rand) string { return fmt.Sprintf("%g", r.NormFloat64()*1e-80) },
		func(r *rand.Rand) string { return [...]string{"5", "5", "5", "?"}[r.IntN(4)] },
		func(r *rand.Rand) string { return [...]string{"0", "1", ""}[r.IntN(3)] },
		func(r *rand.Rand) string { return [...]string{"a b", "é", "x=1", "-", "NA"}[r.IntN(5)] },
		func(r *rand.Rand) string { return fmt.Sprint(1_000_000 + r.IntN(3)) },
		func(r *rand.Rand) string { return fmt.Sprint(math.Exp(20 * r.NormFloat64())) },
		func(r *rand.Rand) string { return fmt.Sprintf("w%d", int(math.Exp(4*r.Float64()))) },
		func(r *rand.Rand) string {
			return [...]string{"1e39", "-1e39", "0", "3", fmt.Sprint(r.NormFloat64())}[r.IntN(5)]
		},
	}
	labels := []func(r *rand.Rand) string{
		func(r *rand.Rand) string { return [...]string{"yes", "no"}[r.IntN(2)] },
		func(r *rand.Rand) string { return [...]string{"yes", "no"}[indicate(r.IntN(25) > 0)] },
		func(r *rand.Rand) string { return [...]string{"a", "b", "c"}[r.IntN(3)] },
		func(r *rand.Rand) string { return fmt.Sprint(1e-9 * r.NormFloat64()) },
		func(r *rand.Rand) string { return fmt.Sprint(math.Exp(10 * r.NormFloat64())) },
	}
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 9))
		first, second, label := kinds[r.IntN(len(kinds))], kinds[r.IntN(len(kinds))], labels[r.IntN(len(labels))]
		path := write(t, "rows.csv", lines("first,second,third,y", 160, func(int) string {
			return fmt.Sprintf("%s,%s,%.3f,%s", first(r), second(r), r.NormFloat64(), label(r))
		}))
		o := besideFiles(400)
		o.NoTrees = seed%3 == 0
		d, err := FromSample(path, o)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		} else if _, err := load(t, d).Compile(); err != nil || d.Start == nil && d.Public == nil && !o.NoTrees {
			t.Errorf("seed %d: %v, notes %q", seed, err, d.Notes)
		}
	}
}

// TestVectorsBegin: data of libsvm have a public model of their values, and the vector is hidden.
func TestVectorsBegin(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	path := write(t, "rows.libsvm", strings.TrimPrefix(lines("", 600, func(int) string {
		a, b := r.IntN(4), r.IntN(2)
		return fmt.Sprintf("%d 1:%d 3:%d 5:%.3f", 2*indicate(r.Float64() < 0.1+0.8*float64(indicate(a > 1)^b))-1, a, b,
			r.Float64())
	}), "\n"))
	d, err := FromSample(path, besideFiles(20000))
	if err != nil {
		t.Fatal(err)
	}
	m, err := load(t, d).Compile()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(d.Task); !strings.Contains(text, "hidden: true}") ||
		!strings.Contains(text, "start: t-start.json") ||
		m.Names()[0] != "stage~1" {
		t.Errorf("coordinates %v of\n%s", m.Names(), text)
	}
}

// load writes the files of a draft and returns the task that they make, whose start is not read.
func load(t *testing.T, d *Draft) *task.Spec {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string][]byte{"t.yaml": d.Task, "t-public.json": d.Public,
		"t-start.json": []byte("{}")} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec, err := task.Load(filepath.Join(folder, "t.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// TestBeginsWithAPublicModel: a draft with labels is a task whose coordinates are of a public model, and its start
// predicts the sample far better than the best constant.
func TestBeginsWithAPublicModel(t *testing.T) {
	for _, c := range []struct {
		label string
		wants []string
		least float64 // accuracy of the start on the sample
	}{
		{"two", []string{"public: t-public.json", "start: t-start.json}", "rounds: {max: 2}", "norm_bound: ",
			"{column: money, kind: numeric, scale: log, unit: ", "{column: money, kind: hats, knots: [0, ",
			"part: weekday, kind: numeric, min: 1, max: 7, hidden: true}", `clip: 3, marks: ["$"], hidden: true}`,
			"{column: code, kind: numeric, ", "{column: code, kind: categorical, ", `hidden: true}`}, 0.75},
		{"four", []string{"public: t-public.json", "start: t-start.json}", "rounds: {max: 2}"}, 0.6},
		{"number", []string{"public: t-public.json", "offset: true}", "norm_bound: "}, 0},
	} {
		path := write(t, "rows.csv", crooked(1200, c.label))
		d, err := FromSample(path, besideFiles(20000))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.wants {
			if !strings.Contains(string(d.Task), want) {
				t.Errorf("%s: no %q in\n%s", c.label, want, d.Task)
			}
		}
		spec := load(t, d)
		m, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if d.Start == nil {
			d.Start = make([]float64, m.Dim())
		}
		right, valid, squares := 0, 0, 0.0
		r, err := source.Open(path, m)
		if err != nil {
			t.Fatal(err)
		}
		var x convex.Example
		for row, err := range r.All() {
			if err != nil || m.Map(row, &x) != nil {
				t.Fatalf("%s: a row of the sample does not fit", c.label)
			}
			valid++
			scores := m.Scores(nil, d.Start, x)
			if m.Predict(scores) == x.Label {
				right++
			}
			squares += x.Label * x.Label
		}
		r.Close()
		if c.least > 0 && float64(right) < c.least*float64(valid) || valid != 1200 {
			t.Errorf("%s: the start is right for %d of %d rows", c.label, right, valid)
		}
		if c.label == "number" && math.Sqrt(squares/float64(valid)) > 0.5 {
			t.Errorf("residuals have root mean square %.2f of their bound", math.Sqrt(squares/float64(valid)))
		}
		notes := strings.Join(d.Notes, "\n")
		for _, want := range []string{"boosted trees", "On rows that it was not made of", "20000 users"} {
			if !strings.Contains(notes, want) {
				t.Errorf("%s: no note %q in\n%s", c.label, want, notes)
			}
		}
	}
}

// TestSameSampleSameDraft: all files are the same from the same sample, on one processor too, whatever other files lie
// beside it.
func TestSameSampleSameDraft(t *testing.T) {
	path := write(t, "rows.csv", crooked(800, "two"))
	one, err := FromSample(path, besideFiles(9000))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "private.csv"), []byte(crooked(50, "four")),
		0o600); err != nil {
		t.Fatal(err)
	}
	before := runtime.GOMAXPROCS(1)
	other, err := FromSample(path, besideFiles(9000))
	runtime.GOMAXPROCS(before)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one.Task, other.Task) || !bytes.Equal(one.Public, other.Public) ||
		!slices.Equal(one.Start, other.Start) {
		t.Error("the same sample made another draft")
	}
}

// TestBeginsWithALinearModel: without trees the coordinates are hats and words, and nothing is hidden.
func TestBeginsWithALinearModel(t *testing.T) {
	for users, want := range map[int]string{400: "rounds: {max: 1}", 3000: "rounds: {max: 2}",
		100000: "rounds: {max: 3}"} {
		o := besideFiles(users)
		o.NoTrees = true
		d, err := FromSample(write(t, "rows.csv", crooked(1200, "two")), o)
		if err != nil {
			t.Fatal(err)
		}
		text := string(d.Task)
		if d.Public != nil || d.Start == nil || strings.Contains(text, "hidden") || strings.Contains(text, "kind: numeric") ||
			!strings.Contains(text, "kind: hats") || !strings.Contains(text, want) {
			t.Errorf("%d users: want %q in\n%s", users, want, text)
		}
	}
}

// TestBeginsWithNothing: where labels must not be used, or there are too few, or no files, or another loss, the task
// begins with nothing, says why, and is as it would be without labels.
func TestBeginsWithNothing(t *testing.T) {
	for name, c := range map[string]struct {
		rows  int
		label string
		spoil func(o *Options)
		why   string
	}{
		"asked":  {1200, "two", func(o *Options) { o.NoLabels = true }, "as asked for"},
		"few":    {99, "two", func(*Options) {}, "99 rows are too few, want 100"},
		"many":   {400, "two", func(o *Options) { o.Users = 100_000 }, "400 rows tell less than so many users, want 500"},
		"stdout": {1200, "two", func(o *Options) { o.Public, o.Start = "", "" }, "with -o"},
		"loss":   {1200, "two", func(o *Options) { o.Loss = "smoothed-hinge" }, "none for loss smoothed-hinge"},
		"number": {1200, "number", func(o *Options) { o.NoTrees = true }, "of numbers it is made of trees"},
	} {
		o := besideFiles(3000)
		c.spoil(&o)
		d, err := FromSample(write(t, "rows.csv", crooked(c.rows, c.label)), o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d.Public != nil || d.Start != nil || strings.Contains(string(d.Task), "hidden") ||
			!strings.Contains(strings.Join(d.Notes, "\n"), "no public model: ") ||
			!strings.Contains(strings.Join(d.Notes, "\n"), c.why) {
			t.Errorf("%s: notes %q\n%s", name, d.Notes, d.Task)
		}
	}
}

// TestKnots: few values are all knots; values that many rows have are knots beside quantiles of the others.
func TestKnots(t *testing.T) {
	var wide []float64
	for i := range 1001 {
		wide = append(wide, float64(i))
	}
	zeros := append(make([]float64, 1001), wide[1:]...)
	for i, c := range []struct {
		x    []float64
		k    int
		want []float64
	}{
		{[]float64{1, 1, 2, 5, 5}, 5, []float64{1, 2, 5}},
		{wide, 5, []float64{5, 253, 500, 747, 995}},
		{zeros, 3, []float64{0, 6, 995}},
		{zeros, 2, []float64{0, 501}},
		{[]float64{3, 3, 3}, 5, []float64{3}},
	} {
		if got := Knots(c.x, c.k); !slices.Equal(got, c.want) {
			t.Errorf("case %d: knots %v, want %v", i, got, c.want)
		}
	}
}

// TestFilesFit: however many inputs and classes there are, the file of the public model is not longer than tasks take.
func TestFilesFit(t *testing.T) {
	for name, c := range map[string]struct{ columns, classes int }{"wide": {60, 2}, "classes": {5, 10}, "many": {3, 20}} {
		r := rand.New(rand.NewPCG(8, 8))
		var head []string
		for j := range c.columns {
			head = append(head, fmt.Sprintf("c%d", j))
		}
		path := write(t, "rows.csv", lines(strings.Join(head, ",")+",y", 800, func(i int) string {
			var b strings.Builder
			sum := 0.0
			for range c.columns {
				x := r.NormFloat64()
				sum += x
				fmt.Fprintf(&b, "%.4f,", x)
			}
			class := min(max(int((sum/math.Sqrt(float64(c.columns))+2)*float64(c.classes)/4), 0), c.classes-1)
			return fmt.Sprintf("%sk%d", b.String(), class)
		}))
		d, err := FromSample(path, besideFiles(1_000_000))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(d.Public) > task.MaxPublic || d.Start == nil {
			t.Errorf("%s: a file of %d bytes, a start of %d numbers", name, len(d.Public), len(d.Start))
		}
	}
}
