package device_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/learner/block"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// newProx is newSilos with minimisers as reports, calibrated for them. Trials are the fewest that keep the budget.
func newProx(t *testing.T, trust accounting.Trust, rounds int) *world {
	w := newSilos(t, trust, rounds)
	const weight = 0.25
	features, err := w.spec.Compile()
	must(t, err)
	loss, err := w.spec.Loss()
	must(t, err)
	beta := loss.Smoothness(features.Bound())
	honest := w.spec.Privacy.HonestFraction.Fraction
	c, err := accounting.Calibrate(accounting.Request{Users: 2, Dim: blockDim, Epsilon: 4, Delta: 1e-3, Trust: trust,
		HonestFraction: honest, Rounds: rounds,
		Units: w.params.Units, Minimizer: true})
	must(t, err)
	p := w.task.Plan
	w.params.Levels, w.params.Trials, w.params.Minimizer, w.params.ClipNorm = uint32(c.Levels), uint32(c.Trials), true,
		1/weight
	if trust == accounting.Local {
		w.params.Window = uint32(randomizer.WindowOf(c.Trials, float64(w.spec.Silo.Units)/float64(w.spec.Silo.Least)))
	}
	p.Algorithm, p.ClipNorm = "prox", 1
	for _, f := range p.Phases {
		f.Mechanism = manifest.Mechanism(w.params, 1)
		f.Constants = &wire.Phase_Prox{Prox: &wire.Prox{Weight: weight, Steps: 20, StepSize: 1 / (beta + weight)}}
	}
	w.hash = taskHash(t, w.task)
	return w
}

// A silo reports to prox about all of its rows in every round, or about new ones in each: one vector, with the noise
// for its number of rows. The ledger holds the cost of the vector's shift.
func TestSilosReportMinimisers(t *testing.T) {
	for _, c := range []struct {
		trust  accounting.Trust
		rounds int
		parts  []part
		units  uint64
	}{
		{accounting.Local, 4, []part{{"a", 0, 9}}, 9}, // fewer than planned for
		{accounting.Local, 4, []part{{"a", 0, 20}}, 20},
		{accounting.Shuffle, 4, []part{{"a", 0, 20}}, 20},
		{accounting.Local, 1, []part{{"a", 0, 12}}, blockUnits},
		{accounting.Shuffle, 1, []part{{"a", 0, 12}}, blockUnits},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newProx(t, c.trust, c.rounds)
			all := [2]*organisation{w.organisation(participation.NewMemoryStore()),
				w.organisation(participation.NewMemoryStore())}
			w.play(t.Context(), func(ctx context.Context) {
				var group sync.WaitGroup
				for _, o := range all {
					group.Go(func() {
						sum, err := o.run(ctx, "x", c.parts...)
						if err != nil || sum.Counted != uint64(len(o.draws)) {
							t.Errorf("%v: %+v, %v", c, sum, err)
						}
					})
				}
				group.Wait()
			})
			for i, o := range all {
				o.audit(w, all[1-i].spy)
				rounds, trials := max(c.rounds, 3), uint32(0) // of one round each, three blocks
				if len(o.drew) != rounds {
					t.Errorf("%v: drew in %d rounds, want %d", c, len(o.drew), rounds)
				}
				for r, d := range o.drew {
					if p := d[0].params; len(d) != 1 || len(d[0].rows) != int(c.units) || p.Units != c.units || !p.Minimizer ||
						p.ClipNorm != 4 {
						t.Errorf("%v: drew %+v in round %d", c, d, r)
					}
					trials = d[0].params.Trials
				}
				if got, want := int(trials)-int(w.params.Trials), int(w.params.Units)-int(c.units); c.trust == accounting.Local &&
					got*want < 0 || got != 0 && (want == 0 || c.trust != accounting.Local) {
					t.Errorf("%v: %d trials, planned %d", c, trials, w.params.Trials)
				}
				honest, err := manifest.HonestFraction(w.task.Plan)
				must(t, err)
				releases, err := manifest.Costliest(w.task.Plan, 0).Releases(honest)
				must(t, err)
				for k := range releases {
					releases[k].Units, releases[k].Trials = c.units, uint64(trials)
				}
				g, err := accounting.RepeatedWithin(1, [][]accounting.Release{releases},
					accounting.Budget{Epsilon: 4, Delta: 1e-3})
				must(t, err)
				book, err := ledger.ReadStatement(o.book, time.Now(), 0)
				must(t, err)
				if len(book.Tasks) != 1 || book.Tasks[0].Epsilon != g.Epsilon || g.Epsilon > 4 || !releases[0].Minimizer {
					t.Errorf("%v: the ledger has %+v, want epsilon %v", c, book.Tasks, g.Epsilon)
				}
			}
		})
	}
}

// A silo with more rows than a minimiser can be about, for its rounding, takes part with as many as it can.
func TestLargestProx(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProx(t, accounting.Local, 4)
		var most uint64
		for most == 0 || most >= 33 { // shorter steps round more
			for _, f := range w.task.Plan.Phases {
				f.GetProx().StepSize /= 2
			}
			w.hash = taskHash(t, w.task)
			a, err := consent.Policy{AllowPlaintext: true}.CheckTask(w.task, w.hash)
			must(t, err)
			most = a.MostUnits()
			if _, err := a.Own(most); err != nil {
				t.Errorf("%d rows, the most: %v", most, err)
			}
			if _, err := a.Own(most + 1); err == nil {
				t.Errorf("%d rows, one too many, are in", most+1)
			}
		}
		o := w.organisation(participation.NewMemoryStore())
		w.play(t.Context(), func(ctx context.Context) {
			sum, err := o.run(ctx, "x", part{"a", 0, int(most) + 7})
			if err != nil || sum.LeftOver != 7 || sum.Units != most || sum.Counted != 1 {
				t.Errorf("%d rows, of which %d can be in a report: %+v, %v", most+7, most, sum, err)
			}
		})
		if d := o.drew[1]; len(d) != 1 || d[0].params.Units != most || len(o.drew) != 4 {
			t.Errorf("drew %+v in round 1 of %d", d, len(o.drew))
		}
		if o.log.count("than a report of the task can be about") != 1 {
			t.Error("nothing is said of the rows that are in no report")
		}
	})
}

// A silo that is stopped while it works on a minimiser has drawn nothing, and goes on when it is started again. It
// says beforehand that the round will not wait for it.
func TestStoppedWhileSolving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProx(t, accounting.Local, 4)
		w.task.Plan.DeadlineMs = 15 // ticks are of 10
		w.hash = taskHash(t, w.task)
		o := w.organisation(participation.NewMemoryStore())
		w.play(t.Context(), func(ctx context.Context) {
			stopped, stop := context.WithCancel(ctx)
			cfg := w.config(o.spy)
			cfg.Rows, cfg.Source, cfg.Ledger, cfg.Policy.MaxEpsilon, cfg.Logger = true, "x", o.book, o.policy, o.log.logger()
			dev := w.client(cfg)
			device.OnReport(dev, func(stream.Round, block.Block, randomizer.Params) {
				stop()
				time.Sleep(time.Millisecond) // in which the device receives it
			})
			sum, err := dev.Run(stopped, files(part{"a", 0, 20}))
			if sum.Unused != 1 || sum.Open != 0 {
				t.Errorf("stopped while it solves: %+v, %v", sum, err)
			}
			if sum, err = o.run(ctx, "x", part{"a", 0, 20}); err != nil || sum.Counted != 1 || len(o.drew) == 0 {
				t.Errorf("started again: %+v, %v", sum, err)
			}
		})
		if n := o.log.count("takes longer than a round waits"); n == 0 {
			t.Error("nothing is said of a report that takes longer than the deadline")
		}
	})
}

// A device believes nothing that a plan says of minimisers: what it does not know to move by so little is refused.
func TestRefusesHostileProx(t *testing.T) {
	w := newProx(t, accounting.Local, 1)
	policy := consent.Policy{AllowPlaintext: true}
	_, err := policy.CheckTask(w.task, w.hash)
	must(t, err)
	declare := func(m *wire.Task, old, new string) {
		text := strings.ReplaceAll(fmt.Sprintf(silos, accounting.Local, "none", 2, 2), old, new)
		spec, err := task.Parse([]byte(text), nil)
		must(t, err)
		m.Declaration, err = spec.Canonical()
		must(t, err)
	}
	for _, c := range []struct {
		name   string
		field  string
		change func(m *wire.Task, f *wire.Phase)
	}{
		{"as planned", "", func(*wire.Task, *wire.Phase) {}},
		{"a shorter step", "", func(_ *wire.Task, f *wire.Phase) { f.GetProx().StepSize /= 2 }},
		{"a longer step", "prox.step_size", func(_ *wire.Task, f *wire.Phase) { f.GetProx().StepSize *= 1.001 }},
		{"a step for smoother losses", "plan", func(_ *wire.Task, f *wire.Phase) { f.GetProx().StepSize = 4.1 }},
		{"no prox", "plan", func(_ *wire.Task, f *wire.Phase) { f.Constants = nil }},
		{"no minimizer", "plan", func(_ *wire.Task, f *wire.Phase) { f.Mechanism.Minimizer = false }},
		{"gradients in its place", "clip_norm", func(_ *wire.Task, f *wire.Phase) {
			f.Constants, f.Mechanism.Minimizer = nil,
				false
		}},
		{"a NaN weight", "plan", func(_ *wire.Task, f *wire.Phase) { f.GetProx().Weight = math.NaN() }},
		{"a larger weight", "plan", func(_ *wire.Task, f *wire.Phase) { f.GetProx().Weight = 0.3 }},
		{"a larger weight, and its clip norm", "", func(_ *wire.Task, f *wire.Phase) {
			f.GetProx().Weight, f.GetProx().StepSize, f.Mechanism.ClipNorm = 0.5, 0.09, 2
		}},
		{"a clip norm that is not declared", "clip_norm", func(m *wire.Task, f *wire.Phase) {
			m.Plan.ClipNorm,
				f.Mechanism.ClipNorm = 0.5, 2
		}},
		{"work without end", "plan", func(_ *wire.Task, f *wire.Phase) { f.GetProx().Steps = math.MaxUint32 }},
		{"more rows than arithmetic is good for", "plan.phases[0].prox", func(_ *wire.Task, f *wire.Phase) {
			f.GetProx().Weight, f.Mechanism.ClipNorm, f.GetProx().StepSize = 0x1p-40, 0x1p40, 0.09
		}},
		{"a loss that is not smooth", "plan.phases[0].prox", func(m *wire.Task, _ *wire.Phase) {
			declare(m, "logistic",
				"hinge")
		}},
		{"a loss with more curvature", "prox.step_size", func(m *wire.Task, _ *wire.Phase) {
			declare(m, "loss: logistic", "loss: logistic, class_weights: [1, 2]")
		}},
		{"scores", "plan", func(_ *wire.Task, f *wire.Phase) { f.Mechanism.Scores = 2 }},
		{"scores that are declared", "plan.phases[0].prox", func(m *wire.Task, _ *wire.Phase) {
			declare(m,
				"validation: {off: true}", "")
		}},
	} {
		m := proto.CloneOf(w.task)
		c.change(m, m.Plan.Phases[0])
		_, err := policy.CheckTask(m, taskHash(t, m))
		if c.field == "" {
			must(t, err)
			continue
		}
		refusal(t, c.name, err, c.field)
	}
	// A silo's own rows decide what rounding may add.
	whole := newProx(t, accounting.Local, 4)
	agreed, err := policy.CheckTask(whole.task, whole.hash)
	must(t, err)
	_, err = agreed.Own(1 << 23)
	refusal(t, "a silo of 2^23 rows", err, "prox")
	greedy := proto.CloneOf(whole.task) // says that every silo has a hundred times the rows, and so needs little noise
	for _, f := range greedy.Plan.Phases {
		f.Mechanism.Units *= 100
	}
	lied, err := policy.CheckTask(greedy, taskHash(t, greedy))
	must(t, err)
	_, err = lied.Own(12)
	refusal(t, "a plan for more rows than there are", err, "rows of this silo")
	if own, err := agreed.Own(40); err != nil || own.Phases[0].Params.Units != 40 ||
		own.Phases[0].Params.Trials >= agreed.Phases[0].Params.Trials {
		t.Errorf("a silo of 40 rows: %v", err)
	}
}
