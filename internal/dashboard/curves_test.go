package dashboard

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/service"
)

func (w *scene) chartOf(t *testing.T, id string, by By) Chart {
	t.Helper()
	st, _ := w.look()
	for _, f := range (drawing{&st, by}).figures() {
		if f.ID == id {
			return f.chart()
		}
	}
	t.Fatalf("no chart %q", id)
	return Chart{}
}

// TestOneSlowRound checks that one slow round flattens no curve: the axis keeps to the others, and the page shows
// what it leaves out. Where all are alike, or grow, it leaves out nothing.
func TestOneSlowRound(t *testing.T) {
	w := newScene()
	w.learn(20)
	before := w.chartOf(t, "latency", byRounds)
	w.commit(3 * time.Hour)
	after := w.chartOf(t, "latency", byRounds)
	if !slices.Equal(before.Y, after.Y) {
		t.Errorf("the axis was %v and became %v", before.Y, after.Y)
	}
	if before.Cut != "" || !strings.Contains(after.Cut, "1 above the axis") ||
		!strings.Contains(after.Cut, "3 h 0 min at most") {
		t.Errorf("%q, then %q", before.Cut, after.Cut)
	}
	if !slices.ContainsFunc(after.Signs, func(m Mark) bool { return m.Kind == "over" }) ||
		!strings.Contains(after.Newest, "took 3 h 0 min") {
		t.Errorf("%+v, %q", after.Signs, after.Newest)
	}
	for name, values := range map[string][]float64{"alike": {5, 5, 5}, "growing": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		"one": {7}, "zeros": {0, 0}, "NaN": {math.NaN(), 3}} {
		if _, high, _ := spread(values); most(values) != high {
			t.Errorf("%s: the axis ends at %v, the values at %v", name, most(values), high)
		}
	}
	if most([]float64{5, 5, 5, 5, 600}) != 5 || most(nil) != 0 {
		t.Error("one of five is not left out")
	}
}

// TestWideBandsFlattenNothing: the band of a first round may be all of the scale.
func TestWideBandsFlattenNothing(t *testing.T) {
	p := plot{curves: []curve{{y: []float64{0.5, 0.8, 0.82, 0.83}, low: []float64{0, 0.78, 0.8, 0.81},
		high: []float64{1, 0.82, 0.84, 0.85}}}}
	if low, high, ok := p.extent(); !ok || low < 0.45 || high > 0.88 {
		t.Errorf("from %v to %v", low, high)
	}
}

// TestAxes: the same points over rounds, users and time.
func TestAxes(t *testing.T) {
	w := newScene()
	w.learn(12)
	for by, want := range map[By]string{byRounds: "round", byUsers: "users counted",
		byTime: "seconds before the last round"} {
		c := w.chartOf(t, "norm", by)
		if c.AxisX != want || strings.Count(c.Points, "\n") != 11 || !strings.HasPrefix(c.Points, "1 46 ") ||
			!strings.Contains(c.Points, "\n12 428 ") {
			t.Errorf("%s: %q, %s", by, c.AxisX, c.Points)
		}
	}
	if got := w.chartOf(t, "norm", byUsers).X; got[len(got)-1].Label != "6k" {
		t.Errorf("%v", got)
	}
	for _, by := range []string{"", "rounds", "nonsense"} {
		if byOf(by) != byRounds {
			t.Errorf("by %q", by)
		}
	}
	d := w.document(t)
	if links := d.all(func(n *html.Node) bool { return attribute(n, "aria-current") == "true" }); len(links) != 1 ||
		attribute(links[0], "href") != "?by=rounds" {
		t.Errorf("%d axes are marked", len(links))
	}
	if page := get(t, w.handler(t, Options{}), "/?by=users").Body.String(); !strings.Contains(page,
		`href="?by=users" aria-current="true"`) || !strings.Contains(page, "users counted</span>") {
		t.Error("without scripts the axis is not to be had")
	}
}

// TestMarks checks that restarts, reopened attempts and void rounds appear at the next point, in the drawing, in
// words and in the CSV.
func TestMarks(t *testing.T) {
	w := newScene()
	eventful(w)
	c := w.chartOf(t, "latency", byRounds)
	kinds := map[string]int{}
	for _, m := range c.Marks {
		kinds[m.Kind]++
	}
	if kinds["restart"] != 1 || kinds["reopened"] != 1 || kinds["void"] != 1 || kinds["over"] != 1 || len(c.Signs) != 4 {
		t.Errorf("%v, %d signs", kinds, len(c.Signs))
	}
	for _, want := range []string{"Before it a round was void.",
		"Before it the learner was started again, attempts were opened again 2 times."} {
		if !strings.Contains(c.Points, want) {
			t.Errorf("no point says %q", want)
		}
	}
}

// TestAlarmsAreMarked: a stream without an end has a curve of its surprise, with the line of the alarm; rounds that
// raised it are marked on every curve, and neither mark nor peak is lost when points are merged.
func TestAlarmsAreMarked(t *testing.T) {
	w := newScene()
	w.learn(8)
	for round := range 600 {
		p := w.progress()
		w.round++
		p.Round = w.round
		p.Tracking = &method.Tracking{Surprise: 0.5, Memory: 4000, Error: 0.02, Cohort: 500, DeadlineMs: 5_400_000}
		if round == 100 {
			p.Tracking.Surprise, p.Tracking.Alarm = 9.5, true
		}
		w.Applied(service.Applied{Progress: p, Attempt: 1, Cohort: 500, BatchUsers: 500, Took: 5 * time.Second})
	}
	for _, id := range []string{"surprise", "gradient"} {
		c := w.chartOf(t, id, byRounds)
		if n := len(strings.Split(c.Points, "the stream changed")) - 1; n != 1 ||
			!slices.ContainsFunc(c.Marks, func(m Mark) bool { return m.Kind == "alarm" }) {
			t.Errorf("%s: %d points say so, marks %+v", id, n, c.Marks)
		}
		if want := "remembers about 4,000 users, and its loss is expected to be about 0.02 above that of the best model. The next round asks 500, and closes with " +
			"fewer after 1h30m0s."; id == "surprise" && !strings.HasSuffix(c.Note, want) {
			t.Errorf("%q, want it to end in %q", c.Note, want)
		}
		if id == "surprise" && (len(c.Series) != 2 || !strings.Contains(c.Points, "surprise 9.5")) {
			t.Errorf("%d lines of the surprise, and no peak", len(c.Series))
		}
	}
}

// TestCSV: every chart gives all its points as numbers.
func TestCSV(t *testing.T) {
	w := newScene()
	eventful(w)
	h := w.handler(t, Options{})
	for id, want := range map[string][]string{
		"accuracy": {"recent_rounds", "recent_rounds_low", "recent_rounds_high", "the_majority_class", "all_rounds",
			"all_rounds_low", "all_rounds_high"},
		"loss": {"recent_rounds", "recent_rounds_low", "recent_rounds_high", "all_rounds", "all_rounds_low",
			"all_rounds_high"},
		"gradient": {"gradient_with_its_noise", "noise_alone", "ratio"}, "latency": {"took", "slowest"}, "norm": {"norm"},
		"reports": {"accepted", "refused"}} {
		r := get(t, h, "/charts/"+id+".csv")
		if r.Header().Get("Content-Disposition") != `attachment; filename="income-`+id+`.csv"` ||
			!strings.HasPrefix(r.Header().Get("Content-Type"), "text/csv") {
			t.Errorf("%s: %v", id, r.Header())
		}
		rows, err := csv.NewReader(r.Body).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		lead := 7
		if id == "reports" {
			lead = 1
		}
		if !slices.Equal(rows[0][lead:], want) || id != "reports" && len(rows) != 1+24 {
			t.Errorf("%s: %v, %d rows", id, rows[0], len(rows))
		}
		for _, row := range rows[1:] {
			for k, cell := range row[lead:] {
				if _, err := strconv.ParseFloat(cell, 64); err != nil && cell != "" {
					t.Errorf("%s: %s is %q", id, want[k], cell)
				}
			}
		}
	}
	rows, err := csv.NewReader(get(t, h, "/charts/latency.csv").Body).ReadAll()
	if err != nil || rows[9][0] != "9" || rows[9][1] != "4500" || rows[9][7] != "2400" || rows[9][5] != "1" ||
		rows[10][3] != "1" || rows[10][4] != "2" {
		t.Errorf("%v, %v, %v", rows[9], rows[10], err)
	}
}

// TestModelIsToBeHad in each format, at any time after the first release and after the end.
func TestModelIsToBeHad(t *testing.T) {
	w := newScene()
	h := w.handler(t, Options{})
	if r := get(t, h, "/model.json"); r.Code != http.StatusServiceUnavailable {
		t.Errorf("before the task has begun: %d", r.Code)
	}
	w.learn(40)
	for _, ended := range []bool{false, true} {
		for file, begins := range map[string]string{"model.json": "{", "model.npz": "PK"} {
			r := get(t, h, "/"+file)
			if r.Code != http.StatusOK || !strings.HasPrefix(r.Body.String(), begins) ||
				r.Header().Get("Content-Disposition") != `attachment; filename="income-`+file+`"` {
				t.Errorf("%s, ended %t: %d, %v, %.20q", file, ended, r.Code, r.Header(), r.Body)
			}
		}
		var s model.Snapshot // without a declaration, which model.Parse needs
		if err := json.Unmarshal(get(t, h, "/model.json").Body.Bytes(), &s); err != nil || s.Round != 40 {
			t.Errorf("%v, of round %d", err, s.Round)
		}
		if r := get(t, h, "/model.onnx"); r.Code != http.StatusNotImplemented { // the scene's model has no declaration
			t.Errorf("ONNX: %d", r.Code)
		}
		w.Stop(Stop{How: Over})
	}
	if clean(`a"b/c.json`) != "a_b_c.json" {
		t.Error("a header takes what it may not hold")
	}
}

// TestTimeLeft checks that the time left is shown only once there is a pace, as a range, and not where nothing goes
// on.
func TestTimeLeft(t *testing.T) {
	tiles := func(w *scene) string { return text(w.document(t).byID("tiles")) }
	says := func(w *scene, want string) {
		t.Helper()
		if got := tiles(w); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	w := newScene()
	w.learn(fewest - 1)
	says(w,
		"Time left not known yet the pace of 3 rounds tells Users still needed 19,000 1,000 counted, of 20,000 planned")
	w.learn(1)
	says(w, "Time left about 3 min at the pace of the last 3 rounds")
	w.pass(time.Hour)
	says(w, "Time left not known the open round takes longer")
	w.commit(time.Hour)
	w.Broker(false)
	says(w, "Time left not known nothing goes on")
	w.learn(36)
	if got := tiles(w); strings.Contains(got, "Time left") {
		t.Errorf("all steps are taken: %q", got)
	}
	endless := newScene()
	endless.task.Needs = nil
	p := endless.progress()
	p.Rounds = 0
	endless.Resumed(p)
	if got := tiles(endless); strings.Contains(got, "Time left") || strings.Contains(got, "needed") ||
		!strings.Contains(got, "of a task without end") {
		t.Errorf("a task without end: %q", got)
	}
	growing := newScene() // the cohorts that are left are twice as large
	growing.task.Needs = func(steps uint64) uint64 { return 1000 * (40 - steps) }
	growing.learn(10)
	says(growing, "Time left about 5 to 6 min")
	for want, d := range map[string][2]time.Duration{"1 s": {0, time.Millisecond}, "40 to 80 s": {40 * time.Second,
		80 * time.Second}, "2 min": {100 * time.Second, 130 * time.Second},
		"12 to 30 h": {12 * time.Hour, 30 * time.Hour}, "3 to 120 days": {72 * time.Hour, 123 * 24 * time.Hour}} {
		if got := span(d[0], d[1]); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// TestNothingIsSpentBeforeAnybodyCame, although the ledger has charged the first round.
func TestNothingIsSpentBeforeAnybodyCame(t *testing.T) {
	w := newScene()
	p := w.progress()
	p.EpsilonSpent = 0.987
	w.Resumed(p)
	d := w.document(t)
	d.says("privacy", "Spent nothing: nobody has been counted yet",
		"Planned epsilon at most 0.987, delta 1e-06, of a budget of 1")
	p.Round, p.Users = 1, 0 // void, and charged
	w.Resumed(p)
	w.document(t).says("privacy", "Spent epsilon at most 0.987, delta 1e-06, by the event that is charged most")
}

// TestStageRows checks that there is a row for each process that is asked, with the numbers that matter.
func TestStageRows(t *testing.T) {
	w := newScene()
	w.learn(3)
	works, idle := w.stage, obs.StageStatus{Task: "income", Failures: 3, Trouble: strings.Repeat("the lease record ", 20)}
	works.Queue, works.Redelivered, works.Strange = obs.Queue{Messages: 1, Bytes: 2048}, 12, 3
	w.stages(Answer{Name: "a:9091", Status: works}, Answer{Name: "b:9091", Status: idle}, Answer{Name: "c:9091",
		Silence: notAStage})
	d := w.document(t)
	d.says("peers",
		"Stage a:9091 works on round 4, attempt 1; waiting for it: 1 report, 2 KiB; 12 reports came again, and count once; 3 reports came for no open attempt",
		"Stage b:9091 stands by, and the broker fails it 3 calls failed in a row; the lease record", "…",
		"Stage c:9091 silent: what answers is not a shuffle stage")
	if rows := d.all(func(n *html.Node) bool { return n.Data == "dt" && n.Parent.Parent == d.byID("peers") }); len(
		rows) != 4 {
		t.Errorf("%d rows", len(rows))
	}
	w.Lost("panlearn.income.round.4")
	w.document(t).says("peers",
		"Broker connected had lost 1 record of this task, seen 12:00:15 UTC: how-to/runbook.md, “The broker lost records”")
	if got := text(d.byID("peers")); strings.Contains(got, strings.Repeat("the lease record ", 15)) {
		t.Error("a cause without end")
	}
}
