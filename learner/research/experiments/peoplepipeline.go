package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// inOnePlace returns the job that learner fit plans without an algorithm for a table of n people of m rows
// each: many passes in one silo of all people, whose mean gradients are cut to a radius.
func inOnePlace(n, m int, epsilon, ridge, radius float64) (run.Job, error) {
	columns := make([]string, peopleDim)
	for i := range columns {
		columns[i] = fmt.Sprintf("{column: x%d, kind: numeric, min: -1, max: 1}", i)
	}
	spec, err := task.Parse(fmt.Appendf(nil,
		"version: 1\nname: people\nevents: {format: csv, header: true}\nfeatures: {columns: [%s]}\nintercept: 0\nnorm_bound: 1\n"+
			"label: {column: y, min: -1, max: 1, scale: raw}\nmodel: {loss: squared, ridge: %g}\nprivacy: {epsilon: %g, delta: %g, trust: local, unit: user}\n"+
			"user: {column: id, items: %d, radius: %g}\nsilo: {count: 1, units: %d, least: %d}\nschedule: {interactive: true}\nvalidation: {off: true}\n",
		strings.Join(columns, ", "), ridge, epsilon, peopleDelta, m, radius, n, n), nil)
	if err != nil {
		return run.Job{}, err
	}
	return run.NewJob(spec)
}

// radiusNoise returns the noise of a coordinate of a mean gradient, in units of the clip norm, and the number
// of rounds.
func radiusNoise(job run.Job) (noise float64, rounds uint64) {
	return job.Inflation() * job.First().Privacy.TotalStd(), manifest.Planned(job.Plan)
}

// pipelined returns a model that a job learns of people at these places, with Gaussian noise of the size that
// is planned, as learner plan --compare simulates it. What a row says in a round is computed once for the
// pool: what a person says is the mean over a stretch of that, cut to the radius.
func (p *population) pipelined(job run.Job, places []int, m int, seed uint64) ([]float64, error) {
	learned, err := learner.New(job.Plan)
	if err != nil {
		return nil, err
	}
	for !learned.Done() {
		q := learned.Query()
		at, _ := manifest.PhaseOf(job.Plan, q.Step)
		mean, err := p.said(job, at.Phase, q, places, m)
		if err != nil {
			return nil, err
		}
		std := at.Phase.Mechanism.ClipNorm * job.Forecasts[at.Index].Privacy.TotalStd()
		normal := rand.New(sim.Entropy(seed, "people: noise of the pipeline", q.Step))
		for j := range mean {
			mean[j] += std * normal.NormFloat64()
		}
		if err := learned.Step(method.Estimate{Gradient: mean, Users: 1, PrivacyVariance: std * std,
			NoiseProxy: std * std}); err != nil {
			return nil, err
		}
	}
	return learned.Model(), nil
}

// said returns the mean of what these people say in a round.
func (p *population) said(job run.Job, phase *wire.Phase, q method.Query, places []int, m int) ([]float64, error) {
	of, err := report.Config{Features: job.Features.Dim(), Loss: job.Loss, ClipNorm: job.Plan.ClipNorm,
		Radius: job.Plan.Radius, Practical: manifest.Practical(job.Plan)}.
		Phase(report.Statistic(phase.Statistic), phase.Smoothing)
	if err != nil {
		return nil, err
	}
	most := of.Norm()
	of.Radius = 0 // of single rows
	rows, err := report.NewExact(of)
	if err == nil {
		err = rows.At(q.Point, q.Frame)
	}
	if err != nil {
		return nil, err
	}
	sum := make([]float64, of.Dim())
	sums := make([][]float64, 1, p.size/stride+1)
	sums[0] = make([]float64, len(sum))
	for i := range p.size {
		for j, v := range rows.Unit(p.rows[i]) {
			sum[j] += v
		}
		if i%stride == stride-1 {
			sums = append(sums, append([]float64(nil), sum...))
		}
	}
	mean, one := make([]float64, len(sum)), make([]float64, len(sum))
	for _, from := range places {
		p.between(one, sums, from, m)
		convex.Clip(one, most)
		for j, v := range one {
			mean[j] += v / float64(len(places))
		}
	}
	return mean, nil
}
