package rehearse

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
)

// A madeStream is a random stream of two classes: its rows in order, which of its features are indicators, and the
// horizon and epsilon of a task for it.
type madeStream struct {
	rows       []convex.Example
	indicators []bool
	horizon    int
	epsilon    float64
}

// makeStream draws one: correlated or heavy-tailed features and indicators, shares of 1:300 to 1:1, and no drift,
// shares that jump or walk, another truth, or seasons; some features leave their bounds.
func makeStream(r *rand.Rand, features, events [2]float64) madeStream {
	between := func(low, high float64) float64 { return low + (high-low)*r.Float64() }
	log := func(of [2]float64) int { return int(math.Exp(between(math.Log(of[0]), math.Log(of[1])))) }
	d, n := log(features), log(events)
	out := madeStream{horizon: int(between(0.2, 1) * float64(n)), epsilon: []float64{0.25, 0.5, 1, 2, 4, 8}[r.IntN(6)],
		indicators: make([]bool, d)}
	mix, heavy, cut, scale := between(0, 1), make([]bool, d), make([]float64, d), make([]float64, d)
	some, tails := []float64{0, 0, 0.5, 1}[r.IntN(4)], r.IntN(5) < 2
	correlated := r.IntN(2) == 0
	for j := range d {
		out.indicators[j], heavy[j], cut[j], scale[j] = r.Float64() < some, tails && r.IntN(2) == 0, between(-1, 2.5), 1
	}
	length := between(0.5, 4)
	truth := [2][]float64{randomDirection(r, d, length), randomDirection(r, d, length)}
	kind, base := r.IntN(5), -between(0, math.Log(300))
	at, to, walk, seasons := between(0.2, 0.8), between(-4, 1), between(0, 2)/math.Sqrt(float64(n)), between(0.3, 4)
	leaves, factor, offset := n+1, between(0.2, 4), between(-3, 3)
	if r.IntN(5) == 0 {
		leaves = int(float64(n) * between(0.3, 0.8))
	}
	bound := []float64{3, 4, 8}[r.IntN(3)]
	odds := base
	for i := range n {
		t, common := float64(i)/float64(n), r.NormFloat64()
		turn := 0.0
		switch {
		case kind == 1 && t > at:
			odds = to
		case kind == 2:
			odds += walk * r.NormFloat64()
		case kind == 3 && t > at:
			turn = 1
		case kind == 4:
			turn = 0.5 - 0.5*math.Cos(2*math.Pi*t*seasons)
		}
		x, z := make([]float64, d+1), odds
		for j := range d {
			v := r.NormFloat64()
			if correlated {
				v = math.Sqrt(mix)*common + math.Sqrt(1-mix)*v
			}
			if heavy[j] {
				v = math.Exp(v) - 1
			}
			if out.indicators[j] {
				on := v > cut[j]
				v = 0
				if on {
					v = 1
				}
			}
			z += v * ((1-turn)*truth[0][j] + turn*truth[1][j])
			if i >= leaves && !out.indicators[j] {
				v = v*factor + offset
			}
			if !out.indicators[j] {
				v = min(max(v, -bound), bound) / bound
			}
			x[j] = v
		}
		x[d] = 1
		label := -1.0
		if r.Float64() < 1/(1+math.Exp(-z)) {
			label = 1
		}
		out.rows = append(out.rows, convex.Example{Value: x, Label: label})
	}
	return out
}

func randomDirection(r *rand.Rand, d int, length float64) []float64 {
	out := make([]float64, d)
	for j := range out {
		out[j] = r.NormFloat64()
	}
	n := convex.Norm(out)
	for j := range out {
		out[j] *= length / n
	}
	return out
}

// task declares the stream's task without end.
func (m madeStream) task(t *testing.T) run.Job {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\nname: made\nevents: {format: csv, header: true}\nfeatures:\n  columns:\n")
	for j, is := range m.indicators {
		if is {
			fmt.Fprintf(&b, "    - {column: x%d, kind: indicator}\n", j)
		} else {
			fmt.Fprintf(&b, "    - {column: x%d, kind: numeric, min: -1, max: 1}\n", j)
		}
	}
	fmt.Fprintf(&b,
		"label: {column: y, positive: [\"1\"], negative: [\"0\"]}\nmodel: {loss: logistic}\nprivacy: {epsilon: %v, delta: 1e-6}\n"+
			"schedule: {users: %d, continuous: adaptive}\n", m.epsilon, m.horizon)
	spec, err := task.Parse([]byte(b.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.NewJob(spec)
	if err != nil {
		t.Fatalf("epsilon %v, %d features, %d users: %v", m.epsilon, len(m.indicators), m.horizon, err)
	}
	return job
}

// TestRandomStreams: of 200 random streams at most four end their second half above its best constant by .02 and
// three times the expected error that status prints, and none goes on growing. The short form runs four of fewer
// features.
func TestRandomStreams(t *testing.T) {
	count, most, features, events := 4, 0, [2]float64{2, 40}, [2]float64{15000, 25000}
	if longtest.Run(t, "196 of 200 random streams") {
		count, most, features, events = 200, 4, [2]float64{2, 300}, [2]float64{15000, 80000}
	}
	r := rand.New(rand.NewPCG(1, 1))
	var above []string
	for k := range count {
		m := makeStream(r, features, events)
		job := m.task(t)
		s := Rehearsal{Rows: rowsOf(t, job, m.rows), job: job}
		out, err := s.series(t.Context(), trials{"private", io.Discard, uint64(k), 1}, sim.Config{Plan: job.Plan})
		if err != nil {
			t.Fatal(err)
		}
		p := out.runs[0].Prequential
		what := fmt.Sprintf("stream %d: %d features, epsilon %v, %d users, horizon %d: log loss %.4f, expected error %.4f", k,
			len(m.indicators), m.epsilon, p.Users,
			m.horizon, *p.LogLoss, p.Tracking)
		t.Log(what)
		if p.Diverged {
			above = append(above, what)
		}
		if math.IsNaN(*p.LogLoss) || *p.LogLoss > 1.5 {
			t.Errorf("grows: %s", what)
		}
	}
	if len(above) > most {
		t.Errorf("%d of %d end above their best constant, want at most %d:\n%s", len(above), count, most,
			strings.Join(above, "\n"))
	}
}
