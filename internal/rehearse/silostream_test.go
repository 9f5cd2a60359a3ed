package rehearse

import (
	"io"
	"math/rand/v2"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestSilosOfAStream: a model of silos whose rows never stop coming is as good as the truth allows, sounds the alarm
// when the truth turns round (under trust local noise may hide that), and is good again before as many rows came once
// more. Every row is scored, and no block is in two rounds.
func TestSilosOfAStream(t *testing.T) {
	const silos, each, turns = 5, 8000, 4000
	for _, trust := range []string{"shuffle", "local"} {
		spec, err := task.Parse([]byte(`version: 1
name: made
events: {format: csv, header: true}
features: {columns: [{column: x0, kind: numeric, min: -1, max: 1}, {column: x1, kind: numeric, min: -1, max: 1}]}
label: {column: y, positive: ["1"], negative: ["0"]}
model: {loss: logistic}
privacy: {epsilon: 2, delta: 1e-6, trust: `+trust+`}
silo: {count: 5, units: 3000}
schedule: {continuous: adaptive}
`), nil)
		if err != nil {
			t.Fatal(err)
		}
		job, err := run.NewJob(spec)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(31, 32))
		rows := make([][]convex.Example, silos)
		for i := range rows {
			for k := range each {
				x, sign := []float64{2*r.Float64() - 1, 2*r.Float64() - 1, 1}, 1.0
				if k >= turns {
					sign = -1
				}
				label := sign
				if x[0]-x[1]+0.2*r.NormFloat64() < 0 {
					label = -sign
				}
				rows[i] = append(rows[i], convex.Example{Value: x, Label: label})
			}
		}
		groups := Groups{blocks: func(plan *wire.Plan, seed uint64) (all []block.Block, silos []int) {
			all, silos, _ = sim.BlocksOf(rows, int(manifest.Gradients(plan).Mechanism.Units), seed, block.Of)
			return all, silos
		}}
		s := Rehearsal{Rows: rowsOf(t, job, nil), Groups: groups, job: job}
		out, err := s.series(t.Context(), trials{"private", io.Discard, 1, 1}, sim.Config{Plan: job.Plan})
		if err != nil {
			t.Fatal(err)
		}
		p := out.runs[0].Prequential
		units := manifest.Gradients(job.Plan).Mechanism.Units
		if want := (out.rounds - 1) * silos * units; p.Users != want || out.rounds != each/units {
			t.Errorf("%s: %d rows in %d rounds, want %d: every block once", trust, p.Users, out.rounds, want)
		}
		mean := func(from, to float64) (sum float64) {
			part := p.Curve[int(from*float64(len(p.Curve))):int(to*float64(len(p.Curve)))]
			for _, stretch := range part {
				sum += *stretch.LogLoss / float64(len(part))
			}
			return sum
		}
		if before, after := mean(0.3, 0.48), mean(0.8, 1); before > 0.35 || after > 0.4 {
			t.Errorf("%s: log loss %.3f before the truth turns and %.3f at the end", trust, before, after)
		}
		if len(p.Alarms) == 0 && trust == "shuffle" || len(p.Alarms) > 0 && p.Alarms[0] < turns*silos*9/10 {
			t.Errorf("%s: alarms after %v rows, want one after %d", trust, p.Alarms, turns*silos)
		}
	}
}
