package manifest_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// proxTask has 20 silos that answer 8 rounds of prox about all of their records.
func proxTask() *wire.Task {
	task := siloTask()
	p := task.Plan
	p.Practical, p.ClipNorm = nil, 1
	f := p.Phases[1]
	f.Again, f.Rounds, f.RoundsPerUser = false, 8, 8
	f.Constants = &wire.Phase_Prox{Prox: &wire.Prox{Weight: 0.05, Steps: 40, StepSize: 3}}
	f.Mechanism.Minimizer, f.Mechanism.ClipNorm, f.Mechanism.Scores = true, 20, 0
	p.Phases = p.Phases[1:]
	return task
}

// A report of a minimiser is charged by the shift of one vector, which is a little more than the shift of one unit of
// several; the rounds of a stint compose, and more units of a silo's own are cheaper.
func TestProxIsChargedByItsShift(t *testing.T) {
	task := proxTask()
	if err := manifest.CheckTask(task); err != nil {
		t.Fatal(err)
	}
	at, _ := manifest.PhaseOf(task.Plan, 3)
	releases, err := at.Releases(accounting.One)
	if err != nil || len(releases) != 1 || !releases[0].Minimizer || releases[0].Rounds != 8 || releases[0].Units != 1600 {
		t.Fatalf("%+v, %v", releases, err)
	}
	cost := func(r accounting.Release) float64 {
		g, err := r.Epsilon(1e-6)
		if err != nil {
			t.Fatal(err)
		}
		return g.Epsilon
	}
	mean, larger := releases[0], releases[0]
	mean.Minimizer, larger.Units = false, 3200
	if e := cost(releases[0]); !(e > cost(mean) && e < cost(mean)*(1+1e-4) && cost(larger) < 0.6*e) {
		t.Errorf("epsilon %v, of a mean of units %v, of twice as many units %v", e, cost(mean), cost(larger))
	}
	config, err := at.Mixer()
	if err != nil || !config.Params.Minimizer || config.Params.Units != 1600 {
		t.Errorf("%+v, %v", config.Params, err)
	}
	if _, err := randomizer.NewVectorSum(config.Params, nil); err != nil {
		t.Error(err)
	}
}

// Disjoint blocks answer one round each, in phases whose weights and so norms may differ.
func TestProxOfDisjointBlocks(t *testing.T) {
	task := proxTask()
	p := task.Plan
	f := p.Phases[0]
	f.Rounds, f.RoundsPerUser, f.Users = 2, 1, 40
	g := proto.CloneOf(f)
	g.GetProx().Weight, g.Mechanism.ClipNorm = 0.2, 5
	p.Phases = append(p.Phases, g)
	at, _ := manifest.PhaseOf(p, 3)
	releases, err := at.Releases(accounting.One)
	if err := errors.Join(err, manifest.CheckTask(task)); err != nil || releases[0].Rounds != 1 {
		t.Errorf("%+v: %v", releases, err)
	}
}

func TestRefusesProx(t *testing.T) {
	for want, spoil := range map[string]func(*wire.Plan, *wire.Phase){
		"minimizer false": func(_ *wire.Plan, f *wire.Phase) { f.Mechanism.Minimizer = false },
		"minimizer true": func(_ *wire.Plan, f *wire.Phase) {
			f.Constants = &wire.Phase_Descent{Descent: &wire.Descent{StepSize: 1}}
		},
		"in all phases": func(p *wire.Plan, f *wire.Phase) {
			f.Rounds, f.RoundsPerUser = 1, 1
			g := proto.CloneOf(f)
			g.Constants, g.Mechanism.Minimizer = nil, false
			p.Phases = append(p.Phases, g)
		},
		"of organisations":    func(p *wire.Plan, _ *wire.Phase) { p.Silos = 0 },
		"about rows":          func(p *wire.Plan, _ *wire.Phase) { p.Unit = wire.Unit_UNIT_USER },
		"weight 0":            func(_ *wire.Plan, f *wire.Phase) { f.GetProx().Weight = 0 },
		"weight NaN":          func(_ *wire.Plan, f *wire.Phase) { f.GetProx().Weight = math.NaN() },
		"weight +Inf":         func(_ *wire.Plan, f *wire.Phase) { f.GetProx().Weight = math.Inf(1) },
		"weight -0.05":        func(_ *wire.Plan, f *wire.Phase) { f.GetProx().Weight = -0.05 },
		"step_size NaN":       func(_ *wire.Plan, f *wire.Phase) { f.GetProx().StepSize = math.NaN() },
		"step_size 20.5":      func(_ *wire.Plan, f *wire.Phase) { f.GetProx().StepSize = 20.5 },
		"steps 0":             func(_ *wire.Plan, f *wire.Phase) { f.GetProx().Steps = 0 },
		"steps 16385":         func(_ *wire.Plan, f *wire.Phase) { f.GetProx().Steps = manifest.MaxProxSteps + 1 },
		"clip_norm 19":        func(_ *wire.Plan, f *wire.Phase) { f.Mechanism.ClipNorm = 19 },
		"over weight, NaN":    func(p *wire.Plan, _ *wire.Phase) { p.ClipNorm = math.NaN() },
		"scores 1":            func(_ *wire.Plan, f *wire.Phase) { f.Mechanism.Scores = 1 },
		"smoothing 2":         func(_ *wire.Plan, f *wire.Phase) { f.Smoothing = 2 },
		"ridge 0.1":           func(p *wire.Plan, _ *wire.Phase) { p.Ridge = 0.1 },
		"CONTINUOUS_CONSTANT": func(p *wire.Plan, f *wire.Phase) { p.Continuous, f.Rounds, f.RoundsPerUser = 1, 1, 1 },
		"Units = 33554432001": func(_ *wire.Plan, f *wire.Phase) { f.Mechanism.Units = 4000<<23 + 1 },
	} {
		task := proxTask()
		spoil(task.Plan, task.Plan.Phases[0])
		if err := manifest.CheckTask(task); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
