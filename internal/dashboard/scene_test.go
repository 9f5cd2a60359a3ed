package dashboard

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/practical"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the time at which the tests' clocks begin.
var noon = time.Date(2030, 5, 6, 12, 0, 0, 0, time.UTC)

// A clock moves when a test says so.
type clockwork struct {
	mu sync.Mutex
	at time.Time
}

func (c *clockwork) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clockwork) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// A scene is a board whose learner, stage and clock the test plays.
type scene struct {
	*Board
	*clockwork
	round    uint64 // committed
	users    uint64
	bad      bool // its scores fall
	diverges bool // worse than the best constant
	hidden   bool // by losses that the bound cuts
	stage    obs.StageStatus
	names    []string // of features
}

func newScene() *scene {
	w := &scene{clockwork: &clockwork{at: noon}, names: []string{"hours=40", "age", "education=Masters", "capital_gain",
		"married"}}
	w.Board = New(Config{Now: w.now, Model: w.model, Task: Task{Name: "income", Loss: "logistic", Algorithm: "pagd",
		Trust:    "shuffle",
		Assuming: ", if in every cohort all of the users planned for are honest", Parameters: 100, Users: 20000,
		Deadline: time.Hour, Classes: 2,
		Needs: func(steps uint64) uint64 { return 500 * (40 - steps) }, Expected: &Expected{Bounded: true, Risk: 0.31,
			Start: 0.69}}})
	return w
}

func (w *scene) model(context.Context) (Model, error) {
	weights := []float64{1.25, 0.031, 0.74, -0.42, -0.9}
	s := model.Snapshot{FormatVersion: model.Version, Task: "income", Loss: "logistic", Round: w.round,
		Weights: model.Rows{weights}, Intercept: []float64{0.1},
		Privacy: model.Statement{Trust: "shuffle", HonestFraction: accounting.One, Epsilon: 0.99431, Delta: 1e-6,
			Users: w.users}}
	for _, n := range w.names {
		s.Features = append(s.Features, task.Coordinate{Name: n})
	}
	return Model{Snapshot: s}, nil
}

func (w *scene) progress() service.Progress {
	r := float64(w.round)
	p := service.Progress{Round: w.round, Steps: w.round, Rounds: 40, Users: w.users, EpsilonBudget: 1, Delta: 1e-6,
		ModelNorm: 2.5 * (1 - math.Exp(-r/15))}
	if w.round > 0 {
		p.EpsilonSpent = 0.99431
		half := 0.09 / math.Sqrt(min(r, 10))
		a := 0.6 + 0.24*(1-math.Exp(-r/9)) + 0.012*math.Sin(1.7*r)
		l := 0.69 - 0.3*(1-math.Exp(-r/9)) + 0.01*math.Sin(2.3*r)
		band := func(v, h float64) method.Band { return method.Band{Value: v, Low: v - h, High: v + h} }
		majority := 0.62
		p.Baseline = &practical.Baseline{Accuracy: &majority} // of a loss with weights
		accuracy := method.Scores{Last: band(a, 0.2), Recent: band(a, half), Overall: band(a-0.03, half/2)}
		p.Validation = &method.Validation{Rounds: w.round, Confidence: 0.95, LossBound: 3.3, Accuracy: &accuracy,
			Worse: w.bad, Diverges: w.diverges, AtBound: w.diverges,
			Loss: method.Scores{Last: band(l, 0.3), Recent: band(l, half), Overall: band(l+0.04, half/2)}}
		if w.hidden {
			least := 1.25
			p.Validation.AtBound, p.Validation.LossAtLeast = false, &least
		}
	}
	return p
}

// StageSilent lets the only stage fall silent.
func (w *scene) StageSilent(why Silence) { w.stages(Answer{Silence: why}) }

// announce begins the next round.
func (w *scene) announce() {
	w.Announced(w.round+1, 500)
	w.stage.Task, w.stage.Works, w.stage.Round, w.stage.Attempt, w.stage.Users = "income", true, w.round+1, 1, 0
	w.stage.Cohort, w.stage.Minimum = 500, 450
	deadline := w.now().Add(time.Hour)
	w.stage.Deadline = &deadline
	w.Stage(w.stage)
}

// report lets users join the open round.
func (w *scene) report(n uint64) {
	w.stage.Users += n
	reports := map[string]uint64{"accepted": n, "range": n / 50, "duplicate": n / 25}
	for reason, was := range w.stage.Reports {
		reports[reason] += was
	}
	w.stage.Reports = reports
	w.Stage(w.stage)
}

// commit ends the open round, which took so long.
func (w *scene) commit(took time.Duration) {
	w.round++
	w.users += 500
	r := float64(w.round)
	w.Applied(service.Applied{Progress: w.progress(), Attempt: 1, Cohort: 500, BatchUsers: 500, NoiseStd: 0.0188,
		RoundingStd:  0.002,
		GradientNorm: 0.19 + 0.9*math.Exp(-r/8) + 0.02*math.Cos(3*r), Rejects: map[string]uint64{"range": 10,
			"duplicate": 20}, Took: took})
}

// learn plays whole rounds.
func (w *scene) learn(rounds int) {
	w.Broker(true)
	w.Resumed(w.progress())
	for range rounds {
		w.announce()
		for i := range 5 {
			w.pass(time.Second)
			w.report(uint64(60 + 20*i))
		}
		w.commit(5*time.Second + time.Duration(w.round%7)*200*time.Millisecond)
	}
	w.announce()
}

// eventful plays rounds of which some were void or opened again, one took long, and between which the learner was
// started again.
func eventful(w *scene) {
	w.learn(8)
	w.report(500)
	p := w.progress()
	p.Round++
	w.Applied(service.Applied{Progress: p, Attempt: 1, Void: true, Took: 6 * time.Second})
	w.pass(40 * time.Minute)
	w.commit(40 * time.Minute)
	w.announce()
	w.Board.since.Restarts++
	w.stage.Attempt = 3
	w.pass(5 * time.Second)
	w.report(480)
	a := service.Applied{Progress: w.progress(), Attempt: 3, Cohort: 500, BatchUsers: 500, NoiseStd: 0.0188,
		GradientNorm: 0.4, Took: 5 * time.Second}
	w.round, w.users = w.round+1, w.users+500
	a.Progress = w.progress()
	w.Applied(a)
	w.learn(14)
}

// handler serves a scene; done ends with the test.
func (w *scene) handler(t *testing.T, o Options) http.Handler {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	return Handler(w.Board, done, o)
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
	return w
}

// A document is a parsed page, as a reader without JavaScript sees it.
type document struct {
	*html.Node
	t *testing.T
}

func (w *scene) document(t *testing.T) document {
	t.Helper()
	r := get(t, w.handler(t, Options{}), "/")
	if r.Code != http.StatusOK || r.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d, %v", r.Code, r.Header())
	}
	node, err := html.ParseWithOptions(r.Body, html.ParseOptionEnableScripting(false))
	if err != nil {
		t.Fatal(err)
	}
	return document{node, t}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// all returns the elements for which want holds.
func (d document) all(want func(*html.Node) bool) []*html.Node {
	var out []*html.Node
	for n := range d.Descendants() {
		if n.Type == html.ElementNode && want(n) {
			out = append(out, n)
		}
	}
	return out
}

func (d document) byID(id string) *html.Node {
	d.t.Helper()
	found := d.all(func(n *html.Node) bool { return attribute(n, "id") == id })
	if len(found) != 1 {
		d.t.Fatalf("%d elements have the id %q", len(found), id)
	}
	return found[0]
}

// text returns the text of an element, with single spaces.
func text(n *html.Node) string {
	var all []string
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			all = append(all, c.Data)
		}
	}
	return strings.Join(strings.Fields(strings.Join(all, " ")), " ")
}

func (d document) says(id string, wants ...string) {
	d.t.Helper()
	got := text(d.byID(id))
	for _, want := range wants {
		if !strings.Contains(got, want) {
			d.t.Errorf("%s says %q, want %q", id, got, want)
		}
	}
}
