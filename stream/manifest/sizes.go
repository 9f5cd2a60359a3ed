package manifest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/grant"
	"github.com/panlearn/panlearn/stream/wire"
)

// Sizes are the largest messages of a task in bytes as encoded, signatures included.
type Sizes struct {
	Task, Round, Batch, Report int

	// Single is the size in bytes of a message of one user, in the phase with the largest reports. A message of several
	// users is smaller than as many of one.
	Single int

	// Operators reports whether the task has two operators, so that its broker holds the helper's records too.
	Operators bool

	// Grants reports whether reports have tokens, so that its broker holds lists of those that were counted, and List is the
	// size of the largest such list, else 0.
	Grants bool
	List   int

	// Waiting is the number of report messages that a broker has to hold for one attempt, so that it refuses none of
	// honest devices after the stage has paused: four times the largest cohort. The lot invites a cohort's users. If fewer
	// come, the invited share doubles, so that about twice as many may come; and users of dead attempts, again at most
	// about twice a cohort, send at once. A message carries one user or more.
	Waiting int64
}

// leastWaiting is Sizes.Waiting of the smallest cohorts.
const leastWaiting = 1024

// SizesOf computes the sizes of a task from its body, which may lack keys and name. reasons are those that a batch may
// count rejects under, in ascending order.
func SizesOf(body *wire.Task, reasons []string) (Sizes, error) {
	plan := body.GetPlan()
	key := make([]byte, stream.KeySize)
	task := &wire.Task{Version: stream.Version, Name: strings.Repeat("a", maxName), Declaration: body.GetDeclaration(),
		Plan: plan, Public: body.GetPublic(),
		Suite: body.GetSuite(), IssuerKey: body.GetIssuerKey(), LearnerKey: key, StageKey: key, Life: make([]byte, stream.LifeSize)}
	if HasOperators(plan) {
		task.HelperKey = key
	}
	sizes := Sizes{Waiting: leastWaiting, Operators: HasOperators(plan), Grants: HasGrants(body)}
	var err error
	if sizes.Task, err = signedSize(stream.Marshal(task)); err != nil {
		return Sizes{}, fmt.Errorf("size of the task: %w", err)
	}
	for i, f := range plan.GetPhases() {
		of, err := sizesOfPhase(body, f, reasons)
		if err != nil {
			return Sizes{}, fmt.Errorf("phase %d: %w", i+1, err)
		}
		sizes.Round, sizes.Batch, sizes.Report = max(sizes.Round, of.Round), max(sizes.Batch, of.Batch),
			max(sizes.Report, of.Report)
		sizes.Single = max(sizes.Single, of.Single)
		sizes.Waiting = max(sizes.Waiting, 4*int64(largest(f)))
		if sizes.Grants {
			most := min(largest(f)+uint64(f.Mechanism.MaxBundle), grant.ListHashes)
			sizes.List = max(sizes.List, grant.ListSize(int(most)))
		}
	}
	return sizes, nil
}

// largest returns the largest cohort of a phase.
func largest(f *wire.Phase) uint64 {
	if f.GetTop() > 0 {
		return f.Top
	}
	return max(f.GetCohort(), LastCohort(f))
}

// sizesOfPhase returns the sizes of one phase's messages.
func sizesOfPhase(body *wire.Task, f *wire.Phase, reasons []string) (Sizes, error) {
	plan, m := body.Plan, f.GetMechanism()
	params, err := Params(m)
	if err != nil {
		return Sizes{}, err
	}
	if err := validateShared(plan, m); err != nil {
		return Sizes{}, err
	}
	planned, bundle, hash := max(f.Cohort, LastCohort(f)), int(m.MaxBundle), make([]byte, stream.HashSize)
	at := Place{Plan: plan, Phase: f}
	round := &wire.Round{Version: stream.Version, TaskHash: hash, Round: math.MaxUint64, Step: math.MaxUint64,
		Point: slices.Repeat([]float64{1}, at.Point()), DeadlineMs: plan.GetStaleMs(), Cohort: f.GetTop()}
	if at.Framed() {
		round.Frame = largestFrame(plan)
	}
	users := largest(f) + uint64(bundle)
	most, err := params.MaxTotal(users, params.NoiseTrials(users, planned))
	if err != nil {
		return Sizes{}, err
	}
	batch := &wire.Batch{Version: stream.Version, TaskHash: hash, ManifestHash: hash, Round: math.MaxUint64,
		Attempt: math.MaxUint64,
		Users:   math.MaxUint64, NoiseTrials: math.MaxUint64, Cutoff: math.MaxUint64, Totals: slices.Repeat([]uint64{most},
			params.Dim)}
	if HasOperators(plan) {
		batch.OpenHash, batch.JoinHash = hash, hash
	}
	if HasGrants(body) {
		batch.SpentHash = hash
	}
	for _, reason := range reasons {
		batch.Rejects = append(batch.Rejects, &wire.Reject{Reason: reason, Count: math.MaxUint64})
	}
	part := PartOf(body, params)
	sizes := Sizes{Report: part.ReportSize(body.Suite, bundle), Single: part.ReportSize(body.Suite, 1)}
	if sizes.Round, err = signedSize(stream.Marshal(round)); err != nil {
		return Sizes{}, fmt.Errorf("size of a round: %w", err)
	}
	if sizes.Batch, err = signedSize(stream.Marshal(batch)); err != nil {
		return Sizes{}, fmt.Errorf("size of a batch: %w", err)
	}
	return sizes, nil
}

// largestFrame returns a frame of a plan with all that it may have.
func largestFrame(plan *wire.Plan) *wire.Frame {
	n, whitener := int(plan.GetPractical().GetFeatures()), 0
	matrix := len(plan.Phases) > 1 && plan.Phases[1].Statistic == wire.Statistic_STATISTIC_SECOND_MOMENT_MATRIX
	if how := Practical(plan); matrix || how != nil && how.Deflated() {
		whitener = (n + 1) * (n + 2) / 2
	}
	ones := func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	return &wire.Frame{Center: ones(n), Scale: ones(n), Intercept: 1, Bound: 1, Clip: 1, Smoothing: 1,
		Whitener:    ones(whitener),
		LabelCenter: 1, LabelScale: 1, LabelWeight: 1}
}

// maxName is the longest task name.
const maxName = 32

// signedSize returns the length of the envelope around a body.
func signedSize(body []byte, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	data, err := stream.Marshal(&wire.Signed{Version: stream.Version, Kind: wire.Kind_KIND_TASK, Body: body,
		Key: make([]byte, stream.KeySize), Signature: make([]byte, stream.SignatureLen)})
	return len(data), err
}

// Fit refuses, with the numbers, a task with a message that is larger than a broker takes. Limits of 0 are not known.
func (s Sizes) Fit(limits stream.Limits) error {
	if limits.MaxPayload <= 0 {
		return nil
	}
	var errs []error
	for _, one := range []struct {
		what string
		size int
		fix  string
	}{
		{"the task", s.Task, "take a smaller public model or start, shorten the declaration"},
		{"a round", s.Round, "lower the dimension"},
		{"a batch", s.Batch, "lower the dimension"},
		{"a list of tokens", s.List, "lower schedule.cohort"},
		{"a report", s.Report, "lower privacy.max_bits or the dimension"},
	} {
		if one.size > limits.MaxPayload {
			errs = append(errs,
				fmt.Errorf("%s of this plan takes up to %d bytes, the broker takes %d: %s, or raise the broker's max_payload",
					one.what, one.size, limits.MaxPayload, one.fix))
		}
	}
	return errors.Join(errs...)
}
