package device_test

import (
	"math"
	"testing"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/wire"
)

// FuzzAgreement: whatever well-formed task and round a learner signs, a device refuses them or has computed for itself
// that the task keeps within its limit.
func FuzzAgreement(f *testing.F) {
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
		agreement, err := consent.Policy{AllowPlaintext: true, MaxEpsilon: limit}.CheckTask(&m, stream.HashOf(task))
		if err != nil {
			return
		}
		if e := agreement.Guarantee.Epsilon; math.IsNaN(e) || e < 0 || e > limit*(1+1e-9) {
			t.Errorf("agreed to epsilon %v", e)
		}
		var r wire.Round
		if stream.Unmarshal(round, &r) != nil {
			return
		}
		for i, f := range agreement.Phases {
			if e := f.Guarantee.Epsilon; math.IsNaN(e) || e > agreement.Guarantee.Epsilon ||
				f.Rounds != m.Plan.Phases[i].RoundsPerUser {
				t.Errorf("agreed to epsilon %v in a phase, %v in all, for %d rounds", e, agreement.Guarantee.Epsilon, f.Rounds)
			}
		}
		if dim := agreement.Phases[0].Params.Dim; agreement.CheckRound(&r, stream.HashOf(round), nil) == nil &&
			len(r.Point) != dim {
			t.Errorf("agreed to a point of %d values in %d dimensions", len(r.Point), dim)
		}
	})
}
