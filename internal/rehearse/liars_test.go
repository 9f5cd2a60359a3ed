package rehearse

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/randomizer"
)

// A lie sets the counts of a report.
type lie func(counts []uint32, most uint32)

// lies lists ways to lie: reports at the ends of their range, in one coordinate or in all. The last two coordinates
// are scores.
var lies = []struct {
	name string
	all  bool
	lie
}{
	{"the intercept up", false, func(counts []uint32, most uint32) { counts[len(counts)-3] = most }},
	{"a feature up", false, func(counts []uint32, most uint32) { counts[0] = most }},
	{"a feature down", false, func(counts []uint32, _ uint32) { counts[1] = 0 }},
	{"all up", true, func(counts []uint32, most uint32) {
		for j := range counts {
			counts[j] = most
		}
	}},
	{"all down", true, func(counts []uint32, _ uint32) { clear(counts) }},
	{"all by turns", true, func(counts []uint32, most uint32) {
		for j := range counts {
			counts[j] = most * uint32(j%2)
		}
	}},
}

// forger returns a hook that lets the devices of a share of the rows lie.
func forger(t *testing.T, share float64, tell lie) func(int32, randomizer.Params, []byte) {
	r := rand.New(rand.NewPCG(27, 3))
	liars := map[int32]bool{}
	return func(i int32, p randomizer.Params, report []byte) {
		lies, known := liars[i]
		if !known {
			lies = r.Float64() < share
			liars[i] = lies
		}
		if !lies {
			return
		}
		counts, err := p.Unpack(nil, report)
		if err != nil {
			t.Fatal(err)
		}
		tell(counts, p.MaxCount())
		copy(report, believable(p, counts))
	}
}

// believable packs a lie as near to it as a stage takes: counts that lie farther from the centre together than any
// device's come nearer.
func believable(p randomizer.Params, counts []uint32) (report []byte) {
	adder, centre := randomizer.NewAdder(p, 1), float64(p.MaxCount())/2
	told := slices.Clone(counts)
	for length := 1.0; ; length -= 0.005 {
		for j, c := range counts {
			told[j] = uint32(math.Round(centre + length*(float64(c)-centre)))
		}
		if report = p.Pack(report[:0], told); adder.ValidateReport(report) == nil {
			return report
		}
	}
}

// logLoss returns the mean loss of the rows of gradients, each scored by the model before its round.
func (m madeStream) logLoss(rounds []told) (mean float64) {
	n := 0.0
	for _, r := range rounds {
		if r.model == nil {
			continue
		}
		for _, e := range m.rows[r.from:r.to] {
			n++
			z := e.Label * e.Dot(r.model)
			mean += (max(0, -z) + math.Log1p(math.Exp(-math.Abs(z))) - mean) / n
		}
	}
	return mean
}

// TestLiarsOfAStream: where 1.2 % of the devices send the end of the range of a coordinate, or of all as far as a stage
// takes it, in the first look too, the log loss of a stream of 8 features grows by less than .1. Liars in all
// coordinates harm more, the more coordinates there are: with 30 features that is measured. At any share of them the
// model stays finite. The short form has one stream and two lies.
func TestLiarsOfAStream(t *testing.T) {
	events, told, epsilons := 10_000, lies[2:4], []float64{1}
	deep := longtest.Run(t, "four of six lies, three of four streams, and epsilon 4")
	if deep {
		events, told, epsilons = 40_000, lies, []float64{1, 4}
	}
	r := rand.New(rand.NewPCG(27, 4))
	at := events / 2
	a, b := randomDirection(r, 8, 2.5), randomDirection(r, 8, 2.5)
	streams := map[string]madeStream{
		"stays":         concepts(r, 8, events, concept{truth: a, odds: 0.5}),
		"another truth": concepts(r, 8, events, concept{truth: a, odds: 0.3}, concept{from: at, truth: b, odds: 0.3}),
		"shares jump":   concepts(r, 8, events, concept{truth: a, odds: -4}, concept{from: at, truth: a}),
		"30 features":   concepts(r, 30, events, concept{truth: randomDirection(r, 30, 2.5), odds: -0.5}),
	}
	if !deep {
		streams = map[string]madeStream{"another truth": streams["another truth"]}
	}
	for _, epsilon := range epsilons {
		for name, m := range streams {
			m.epsilon = epsilon
			job := m.task(t)
			honest, _ := m.follow(t, job, 1, nil)
			for _, one := range told {
				rounds, _ := m.follow(t, job, 1, forger(t, 0.012, one.lie))
				excess := m.logLoss(rounds) - m.logLoss(honest)
				t.Logf("MEASURED: epsilon %v, %s, %s: 1.2 %% liars cost %.4f of the log loss %.4f", epsilon, name, one.name, excess,
					m.logLoss(honest))
				if many := len(m.indicators) > 8; !(many && one.all) && !(excess < 0.1) {
					t.Errorf("epsilon %v, %s, %s: 1.2 %% liars cost %.3f of the log loss", epsilon, name, one.name, excess)
				}
			}
		}
	}
	m := streams["another truth"]
	for _, epsilon := range epsilons {
		m.epsilon = epsilon
		job := m.task(t)
		for _, share := range []float64{0.1, 0.5, 1} {
			for _, one := range told {
				rounds, last := m.follow(t, job, 1, forger(t, share, one.lie))
				n, loss := convex.Norm(last), m.logLoss(rounds)
				t.Logf("MEASURED: epsilon %v, %s, %v of liars: log loss %.3g, a model of norm %.3g", epsilon, one.name, share,
					loss, n)
				if math.IsNaN(n+loss) || math.IsInf(n+loss, 0) {
					t.Errorf("epsilon %v, %s, %v of liars: log loss %v, a model of norm %v", epsilon, one.name, share, loss, n)
				}
			}
		}
	}
}
