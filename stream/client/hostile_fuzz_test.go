package client_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client"
	"github.com/panlearn/panlearn/stream/wire"
)

// FuzzParsePolicy: a policy that is read is valid and always the same; an error fits in a terminal.
func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte("tasks: [churn]\nmax_epsilon: 1.5\nmin_cohort: 100\nhonest_fraction: 0.9\nforbid_first_use: true\nmax_refunds: 0\n"))
	f.Add([]byte("learner_key: 00000000000000000000000000000000000000000000000000000000000000ff\n"))
	f.Add([]byte("a: &x [*x]\n"))
	f.Add([]byte("max_epsilon: .nan\n---\nmax_delta: 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := client.ParsePolicy(data)
		if err != nil {
			if n := len(err.Error()); n > 4096+8*len(data) {
				t.Errorf("an error of %d bytes about %d", n, len(data))
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Errorf("read, and not valid: %v", err)
		}
		if again, err := client.ParsePolicy(data); err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("read again: %v", err)
		}
	})
}

// FuzzTerms: whatever well-formed task and round a learner signs, a device refuses them or has computed for itself that
// the task keeps within its limit.
func FuzzTerms(f *testing.F) {
	const limit = 5
	for _, p := range []plan{
		{rounds: 3, cohort: 50, tight: true}, {rounds: 1, cohort: 7, minimum: 3, bundle: 4, sealed: true},
		{rounds: 2, cohort: 50, tight: true, trust: accounting.ShufflePan},
	} {
		w := newWorld(f, p)
		task, err := stream.Marshal(w.task)
		must(f, err)
		round, err := stream.Marshal(w.round(1, 1))
		must(f, err)
		f.Add(task, round)
	}
	f.Fuzz(func(t *testing.T, task, round []byte) {
		var m wire.Task
		if stream.Unmarshal(task, &m) != nil {
			return
		}
		terms, err := client.Policy{AllowPlaintext: true, MaxEpsilon: limit}.CheckTask(&m, stream.HashOf(task))
		if err != nil {
			return
		}
		if e := terms.Guarantee.Epsilon; math.IsNaN(e) || e < 0 || e > limit*(1+1e-9) {
			t.Errorf("agreed to epsilon %v", e)
		}
		var r wire.Round
		if stream.Unmarshal(round, &r) != nil {
			return
		}
		for i, f := range terms.Phases {
			if e := f.Guarantee.Epsilon; math.IsNaN(e) || e > terms.Guarantee.Epsilon || f.Rounds != m.Plan.Phases[i].RoundsPerUser {
				t.Errorf("agreed to epsilon %v in a phase, %v in all, for %d rounds", e, terms.Guarantee.Epsilon, f.Rounds)
			}
		}
		if dim := terms.Phases[0].Params.Dim; terms.CheckRound(&r, stream.HashOf(round), nil) == nil && len(r.Point) != dim {
			t.Errorf("agreed to a point of %d values in %d dimensions", len(r.Point), dim)
		}
	})
}
