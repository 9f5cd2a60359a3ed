package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/research/isrl"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// An attempt is one run of a contender.
type attempt struct {
	*setting
	trial
	epsilon float64
	choice
	draw *rand.Rand
}

// A choice holds the numbers that are chosen for a contender by trying.
type choice struct{ clip, step float64 }

// A contender is a line of a table.
type contender struct {
	name  string
	local bool // its steps are a silo's own
	own   bool // the task file is complete: there is nothing to choose
	exact bool // epsilon changes nothing
	paper bool // L is the paper's
	run   func(a attempt) ([]float64, error)
	tried func(a attempt) ([]float64, error) // as run, but faster: where choices are tried. nil: run
}

// The contenders, in the order of the tables.
const (
	asPlanned     = "as planned"
	provedMB      = "MB-SGD"
	batchedMB     = "MB-SGD, batches, proved noise"
	paperMB       = "MB-SGD, paper's noise"
	provedLocal   = "local SGD, proved noise"
	paperLocal    = "local SGD, paper's noise"
	releasedMB    = "MB-SGD, as released"
	notPrivateMB  = "MB-SGD, not private"
	notPrivateLoc = "local SGD, not private"
)

var contenders = []contender{
	{name: asPlanned, own: true, run: func(a attempt) ([]float64, error) { return a.planned(a.trial) }},
	{name: provedMB, run: func(a attempt) ([]float64, error) {
		m, err := a.mechanism(a.epsilon)
		if err != nil {
			return nil, err
		}
		return a.descend(a.problem().reports(m, sim.Entropy(a.seed, "experiments: reports")))
	}, tried: func(a attempt) ([]float64, error) {
		m, err := a.mechanism(a.epsilon)
		if err != nil {
			return nil, err
		}
		return a.descend(a.problem().means(0, a.clip*m.TotalStd(), a.draw))
	}},
	{name: batchedMB, run: func(a attempt) ([]float64, error) {
		noise, err := a.batchNoise()
		if err != nil {
			return nil, err
		}
		return a.descend(a.problem().means(a.batch(), noise, a.draw))
	}},
	{name: paperMB, paper: true, run: func(a attempt) ([]float64, error) {
		return a.descend(a.problem().means(a.batch(), a.paperNoise(), a.draw))
	}},
	{name: provedLocal, local: true, run: func(a attempt) ([]float64, error) {
		noise, err := epochNoise(a.step, a.clip, a.rounds, accounting.Budget{Epsilon: a.epsilon, Delta: a.delta()})
		if err != nil {
			return nil, err
		}
		return a.average(a.problem().local(localSteps{size: a.step, after: noise}, a.draw))
	}},
	{name: paperLocal, local: true, paper: true, run: func(a attempt) ([]float64, error) {
		noise := a.federation(a.epsilon, a.clip).LocalNoise(float64(a.rounds), float64(a.batch()))
		return a.average(a.problem().local(localSteps{size: a.step, steps: a.batch(), noise: noise}, a.draw))
	}},
	{name: releasedMB, paper: true, run: func(a attempt) ([]float64, error) { return a.descend(a.released(a)) }},
	{name: notPrivateMB, exact: true, run: func(a attempt) ([]float64, error) {
		return a.descend(a.problem().means(0, 0, a.draw))
	}},
	{name: notPrivateLoc, local: true, exact: true, run: func(a attempt) ([]float64, error) {
		return a.average(a.problem().local(localSteps{size: a.step, steps: a.batch()}, a.draw))
	}},
}

// clippedMeans returns the reporter of the released script for numbers: it clips the mean of a batch to L,
// not each row, so that a row can move it by 2L; for that the noise is too small by the number of rows of a
// batch.
func clippedMeans(a attempt) (reporter, error) {
	free := a.problem()
	free.clip = math.MaxFloat64
	mean, err := free.means(a.batch(), 0, a.draw)
	return func(dst, at []float64, silo int) error {
		if err := mean(dst, at, silo); err != nil {
			return err
		}
		convex.Clip(dst, a.clip)
		disturb(dst, a.paperNoise(), a.draw)
		return nil
	}, err
}

// sums returns the reporter of the released script for classes, divided by K: sums over a batch, with the
// noise of means, once for all silos of a round.
func sums(a attempt) (reporter, error) {
	k, m := float64(a.batch()), float64(a.reports)
	return a.problem().means(a.batch(), math.Sqrt(m)*a.paperNoise()/k, a.draw)
}

// scaled is a loss of several scores whose gradients are clipped by scaling them, as the paper does.
type scaled struct{ convex.Loss }

// problem returns the problem that the silos of a trial report on.
func (a attempt) problem() problem {
	loss := a.job.Loss
	if !convex.OneScore(loss) {
		loss = scaled{loss}
	}
	return problem{loss: loss, features: a.job.Features.Dim(), clip: a.clip, silos: a.trial.silos}
}

// descend takes steps along what silos answer.
func (a attempt) descend(answer reporter, err error) ([]float64, error) {
	if err != nil {
		return nil, err
	}
	return descent{dim: a.problem().dim(), rounds: a.rounds, last: a.last, step: a.step,
		reports: a.reports}.run(len(a.trial.silos), a.draw, answer)
}

// average takes the mean of where silos' own steps end.
func (a attempt) average(answer reporter) ([]float64, error) {
	a.step = 1
	return a.descend(answer, nil)
}

// batch returns K of the released scripts, for all epsilons and all contenders: that of the largest epsilon.
func (s *setting) batch() int {
	return int(s.federation(slices.Max(s.epsilons), 1).ExperimentalBatch(float64(s.rounds)))
}

func (s *setting) federation(epsilon, clip float64) isrl.Federation {
	return isrl.Federation{Silos: float64(len(s.silos)), Available: float64(s.reports),
		Records: float64(s.least), Dim: float64(s.job.Problem.Dim), Lipschitz: clip, Epsilon: epsilon, Delta: s.delta()}
}

// batchNoise returns the standard deviation of each coordinate of the mean of a batch with which all rounds are within the
// budget: batches are drawn without replacement, and what a draw hides is counted.
func (a attempt) batchNoise() (float64, error) {
	if a.noises == nil {
		a.noises = map[float64]float64{}
	}
	if _, known := a.noises[a.epsilon]; !known {
		s := isrl.Sampled{Records: uint64(a.least), Batch: uint64(a.batch()), Rounds: uint64(a.rounds)}
		noise, err := s.LeastNoise(accounting.Budget{Epsilon: a.epsilon, Delta: a.delta()})
		if err != nil {
			return 0, err
		}
		a.noises[a.epsilon] = noise
	}
	return a.clip * a.noises[a.epsilon], nil
}

func (a attempt) paperNoise() float64 {
	return a.federation(a.epsilon, a.clip).ExperimentalNoise(float64(a.rounds))
}

// real returns the epsilon that the paper's noise has for minibatches, where no gradient of a row is longer
// than L times share.
func (s *setting) real(epsilon, share float64) (isrl.Interval, error) {
	return isrl.Sampled{Records: uint64(s.least), Batch: uint64(s.batch()), Rounds: uint64(s.rounds),
		Noise: s.federation(epsilon, 1).ExperimentalNoise(float64(s.rounds)) / share}.Epsilon(s.delta())
}

// mechanism returns the randomizer's plan for R rounds of a silo's own reports.
func (s *setting) mechanism(epsilon float64) (accounting.Plan, error) {
	if m, known := s.mechanisms[epsilon]; known {
		return m, nil
	}
	m, err := accounting.Calibrate(accounting.Request{Users: 1, Dim: s.job.Problem.Dim, Epsilon: epsilon, Delta: s.delta(),
		Trust:          accounting.Local,
		HonestFraction: accounting.One, Rounds: s.rounds, Units: uint64(s.least)})
	s.mechanisms[epsilon] = m
	return m, err
}
