package rehearse

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/method"
)

// TestNoFalseAlarms: streams in which nothing changes raise no alarm, in 3,000 rounds of gradients. The short form has
// 60 rounds.
func TestNoFalseAlarms(t *testing.T) {
	rounds, events := 60, 20_000
	if longtest.Run(t, "all but 60 of 3,000 rounds of streams that stay") {
		rounds, events = 3000, 100_000
	}
	r := rand.New(rand.NewPCG(27, 1))
	seen, alarms, most := 0, 0, math.Inf(-1)
	for k := uint64(1); seen < rounds; k++ {
		d := 2 + r.IntN(30)
		m := concepts(r, d, events, concept{truth: randomDirection(r, d, 0.5+2.5*r.Float64()), odds: 4*r.Float64() - 3})
		if k%2 == 0 {
			m = heavy(r, d, events)
		}
		m.epsilon = []float64{0.5, 1, 4}[k%3]
		all, _ := m.follow(t, m.task(t), k, nil)
		for _, one := range all {
			most = max(most, one.surprise)
			if one.surprise > 2.8 {
				t.Logf("%.2f: stream %d, %d features, epsilon %v, rows %d to %d", one.surprise, k, d, m.epsilon, one.from, one.to)
			}
			if one.surprise > method.Alarm {
				alarms++
				t.Errorf("stream %d, %d features, epsilon %v: rows %d to %d surprise by %.1f", k, d, m.epsilon, one.from, one.to,
					one.surprise)
			}
		}
		seen += len(all)
	}
	t.Logf("MEASURED: %d alarms in %d rounds, the most surprising by %.2f", alarms, seen, most)
}

// TestAlarms checks that, of abrupt changes that cost the current model 10 points of accuracy, nine in ten raise the
// alarm in the round in which they come or in the two after it. The short form has two changes of twenty, at epsilon
// 4, where none is near the line.
func TestAlarms(t *testing.T) {
	changes, events, epsilons := 2, 24_000, []float64{4}
	if longtest.Run(t, "all but 2 of 20 changes, at epsilon 1 and 4") {
		changes, events, epsilons = 20, 60_000, []float64{1, 4}
	}
	for _, epsilon := range epsilons {
		r := rand.New(rand.NewPCG(27, 2))
		in := map[int]int{} // by rounds until the alarm
		drawn := 0
		for made := 0; made < changes; drawn++ {
			d := 4 + r.IntN(20)
			at := events/2 + r.IntN(events/4)
			before := concept{truth: randomDirection(r, d, 1+2*r.Float64()), odds: 2*r.Float64() - 1}
			after := concept{from: at, truth: randomDirection(r, d, 1+2*r.Float64()), odds: 2*r.Float64() - 1}
			m := concepts(r, d, events, before, after)
			m.epsilon = epsilon
			all, _ := m.follow(t, m.task(t), uint64(drawn), nil)
			first := slices.IndexFunc(all, func(one told) bool { return one.to > at })
			kept := all[first].model
			lost := accuracy(kept, m.rows[at-5000:at]) - accuracy(kept, m.rows[at:at+5000])
			if lost < 0.1 {
				continue
			}
			made++
			delay := 0
			for k, one := range all[first:] {
				if one.surprise > method.Alarm {
					delay = k + 1
					break
				}
			}
			in[delay]++
			t.Logf(
				"epsilon %v, %d features, %.2f of the accuracy lost: alarm in round %d from that of the change on (0: none), of %d users, %d of them after it; %.1f",
				epsilon, d, lost, delay, all[first].to-all[first].from, all[first].to-at, surprises(all[first:]))
		}
		t.Logf(
			"MEASURED: epsilon %v: of %d changes %d raise the alarm in the round in which they come, %d in the next, %d in the one after it; %d drawn", epsilon, changes,
			in[1], in[2], in[3], drawn)
		if 10*(in[1]+in[2]+in[3]) < 9*changes {
			t.Errorf("epsilon %v: alarms after so many rounds %v, of %d changes", epsilon, in, changes)
		}
	}
}

// surprises returns the surprise of each of the first rounds, at most 4.
func surprises(of []told) (out []float64) {
	for _, one := range of[:min(len(of), 4)] {
		out = append(out, one.surprise)
	}
	return out
}
