// Package audits selects what is audited of a planned task: every mechanism of the plan, against every adversary that
// its trust knows, on rows that the client's own encoder turns into vectors as far apart as any that are found.
// Package audit runs it.
package audits

import (
	"math"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/report"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/randomizer/audit"
	"github.com/panlearn/panlearn/stream/manifest"
)

// A Mechanism describes the mechanism that each round of some phases runs.
type Mechanism struct {
	Phases    []int  `json:"phases"`    // counted from 1
	Statistic string `json:"statistic"` // what devices report, see report.Statistic, or minimisers
	Cohort    uint64 `json:"cohort"`
	Minimum   uint64 `json:"minimum"` // users who report; the stage tops up the rest, but under trust local
	Dim       int    `json:"d"`
	Levels    int    `json:"g"`
	Trials    uint64 `json:"b"`

	P           float64 `json:"p"`
	FloorTrials uint64  `json:"floor_trials"`
	Units       uint64  `json:"units"` // K of one report
	// RoundsPerUser is T, the rounds of one user. UsersTogether is the number of users who change in the audited
	// round, and UnitsTogether the number of units that change in the report of each.
	RoundsPerUser int    `json:"rounds_per_user"`
	UsersTogether uint64 `json:"users_together"`
	UnitsTogether uint64 `json:"units_together"`
}

// An Audit holds one mechanism and the configuration of its audit against one adversary.
type Audit struct {
	Mechanism
	Config audit.Config
}

// Of returns one audit for each distinct mechanism of the plan and each adversary of the task's trust, configured so
// that the claims about all of them are tested at DefaultConfidence together. The audit against the learner runs only
// the honest users of a planned round, which the claim relies on.
func Of(job run.Job, trials int) ([]Audit, error) {
	type identity struct {
		params    randomizer.Params
		release   accounting.Release
		statistic report.Statistic
	}
	seen := map[identity][]int{} // to the indices of its audits
	var out []Audit
	if err := job.Runnable(); err != nil {
		return nil, err
	}
	for i, phase := range job.Plan.Phases {
		params, err := manifest.Params(phase.Mechanism)
		if err != nil {
			return nil, err
		}
		release := job.Forecasts[i].Privacy.Release()
		id := identity{params, release, report.Statistic(phase.Statistic)}
		if known, ok := seen[id]; ok {
			for _, k := range known {
				out[k].Phases = append(out[k].Phases, i+1)
			}
			continue
		}
		sizes := []size{{params, release}}
		if small, err := smallest(job, i, sizes[0]); err != nil {
			return nil, err
		} else if small != sizes[0] {
			sizes = append(sizes, small)
		}
		for _, of := range sizes {
			for _, view := range viewsOf(release.Trust) {
				seen[id] = append(seen[id], len(out))
				one := auditOf(view, of.params, of.release, id.statistic, phase.Minimum)
				one.Phases = []int{i + 1}
				if one.Config.Pairs, err = pairsOf(job, i, of.params, one.Config.Within); err != nil {
					return nil, err
				}
				out = append(out, one)
			}
		}
	}
	for i := range out {
		out[i].Config.Trials = trials
		out[i].Config.Confidence = 1 - (1-audit.DefaultConfidence)/float64(len(out))
	}
	return out, nil
}

// A size holds the randomizer's parameters for a report, with the units that it is about, and the accountant's
// release, with the noise in it.
type size struct {
	params  randomizer.Params
	release accounting.Release
}

// smallest returns the size of a silo that lacks as many units as it may, if silos make up for the lack with noise of
// their own: under trust local, if all of their units are in every round. Otherwise it returns the planned size.
func smallest(job run.Job, phase int, planned size) (size, error) {
	of := manifest.Costliest(job.Plan, phase)
	least := job.Problem.Silos.Least
	if planned.release.Trust != accounting.Local || !of.Interactive() || least == 0 || least >= planned.release.Units {
		return planned, nil
	}
	releases, budget, err := of.OwnBudget()
	if err != nil {
		return planned, err
	}
	trials, err := accounting.OwnTrials(releases, least, budget)
	if err != nil {
		return planned, err
	}
	own := planned
	own.release.Units, own.release.Trials = least, trials[phase-of.Stint.Index]
	own.params.Units, own.params.Trials = least, uint32(own.release.Trials)
	return own, nil
}

func viewsOf(trust accounting.Trust) []audit.View {
	switch {
	case trust == accounting.Local:
		return []audit.View{audit.OneReport}
	case trust.HasIntruder():
		return []audit.View{audit.Learner, audit.Intruder}
	case trust.HasOperators():
		return []audit.View{audit.Learner, audit.Operator}
	}
	return []audit.View{audit.Learner}
}

// auditOf claims what the accountant computes for one round. The learner's view has k users who change together, k^2 at
// most the rounds of a user (docs/proofs/theorem-a.md, section 4), an operator's view the same, and the view of one
// report as many of its units; the intruder looks into one round, and one user changes.
func auditOf(view audit.View, params randomizer.Params, release accounting.Release,
	of report.Statistic, minimum uint64) Audit {
	honest := release.HonestFraction.Floor(release.Users)
	m := Mechanism{Statistic: of.String(), Cohort: release.Users, Dim: release.Dim,
		Levels: release.Levels, Trials: release.Trials, P: release.P, Minimum: minimum, FloorTrials: release.FloorTrials,
		Units: max(release.Units, 1), RoundsPerUser: release.Rounds, UsersTogether: 1, UnitsTogether: 1}
	together, users := uint64(math.Sqrt(float64(release.Rounds))), release.Users
	if params.Minimizer {
		m.Statistic = "minimisers"
	}
	switch view {
	case audit.Learner:
		m.UsersTogether = min(together, honest, minimum)
	case audit.Operator:
		m.UsersTogether = min(together, minimum)
	case audit.OneReport:
		m.UnitsTogether = min(together, m.Units)
		users, minimum, honest = 1, 1, 1
	}
	together = m.UsersTogether * m.UnitsTogether
	release.Rounds = int(together * together)
	return Audit{m, audit.Config{
		View: view, Params: params, Users: users, Minimum: minimum, Dishonest: users - honest, Together: m.UsersTogether,
		Within: m.UnitsTogether,
		Claim: func(epsilon float64) (float64, error) {
			f, err := release.Delta(epsilon)
			switch view {
			case audit.Intruder:
				return f.Intruder, err
			case audit.Operator:
				return f.Operator, err
			}
			return f.Learner, err
		},
	}}
}
