package compare

import (
	"fmt"
	"slices"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// A Line is one way to learn what a task declares.
type Line struct {
	Trust     string `json:"trust"` // as privacy.trust, or one place: one holder of all rows adds the noise
	Unit      string `json:"unit"`  // as privacy.unit: event or user
	Silos     uint64 `json:"silos"` // 0: everybody reports for himself
	Units     uint64 `json:"units_per_report"`
	Passes    string `json:"passes"` // one: a unit is in one report; many: in every round of its holder
	Algorithm string `json:"algorithm"`
	Rounds    uint64 `json:"rounds"`
	// NoiseStd is the standard deviation of one coordinate of the mean gradient of the first round that has one, in
	// units of the clip norm.
	NoiseStd float64 `json:"noise_std"`
	Sent
	Prediction
	Rows int `json:"rows"` // simulated in a run; the noise is for all rows of the task
	Bound
	Vacuous     bool   `json:"vacuous"` // predicted no better than the best constant
	Unsure      bool   `json:"unsure"`  // predicted better than that, by less than the seeds vary
	Keeps       bool   `json:"keeps_unit"`
	Recommended bool   `json:"recommended"`
	Trusted     string `json:"trusted"` // who is trusted with what, in words
	// Set lists the overrides that make the task this line; null where none do: the line protects events, not
	// people.
	Set []string `json:"set"`

	noise, about string
	rank         int       // of the trust
	points       []float64 // by seed: see Table.Points
	above        []float64 // by seed: points over the best constant
}

// Sent counts what reporters send.
type Sent struct {
	ReportBytes uint64 `json:"report_bytes"` // of one report of a gradient
	Reports     uint64 `json:"reports"`      // of the reporter that takes part in most rounds
	Bytes       uint64 `json:"bytes"`        // in all by the reporter that sends most
}

// A Prediction holds the score that the runs of a line came to.
type Prediction struct {
	// Predicted is the mean of Table.Measure over the seeds. One more run falls within PredictedWithin of it, 19
	// times of 20.
	Predicted       float64 `json:"predicted"`
	PredictedWithin float64 `json:"predicted_within"`
	// Behind is the difference in points to the best line that keeps the task's unit, and BehindError the
	// standard error of it; see Table.Points.
	Behind      float64 `json:"behind"`
	BehindError float64 `json:"behind_error"`
}

// A Bound describes the expected excess risk that is proved.
type Bound struct {
	// Proved bounds it; null: no bound is proved. ProvedVacuous reports whether the bound is no better than the start's.
	Proved        *float64 `json:"proved"`
	ProvedVacuous bool     `json:"proved_vacuous"`
	OnRecords     bool     `json:"on_records"` // it is about the mean loss of the rows at hand, not about the population's
}

// line is a Line with what it is simulated by.
type line struct {
	Line
	job    run.Job
	events bool
	share  uint64    // of the task's units that one unit of a run represents
	std    []float64 // of the noise of a run's sum, by phase
	values []float64 // by seed
}

func newLine(base *task.Spec, w way, sets []string, job run.Job) *line {
	kind := wording.Of(job.Plan)
	privacy := job.First().Privacy
	out := &line{job: job, events: w.events, Line: Line{Trust: w.trust, Unit: kind.Protects, Silos: kind.Silos,
		Units: kind.Units, Passes: "one",
		Algorithm: job.Plan.Algorithm, Rounds: manifest.Planned(job.Plan), NoiseStd: job.Inflation() * privacy.TotalStd(),
		Sent:  Sent{ReportBytes: privacy.ReportBytes},
		Keeps: !w.events, Set: sets, rank: slices.Index(trusts, w.trust)}}
	if w.many {
		out.Passes = "many"
	}
	out.Reports = job.Sent(func(accounting.Plan) uint64 { return 1 })
	out.Bytes = job.Sent(accounting.Plan.SentBytes)
	if job.Problem.Practical == nil {
		risk := job.ExcessRisk
		out.Proved, out.ProvedVacuous, out.OnRecords = &risk, job.Vacuous, job.OnRecords
	}
	own := wording.Of(job.Plan) // in the nouns of the task, wherever its rows are
	own.Silos, own.Protects = 0, kind.Protects
	if base.Silo != nil {
		own.Silos = kind.Silos
	}
	out.noise, out.Trusted = words(w.trust, own)
	out.about = own.Unit().Count(kind.Units)
	if kind.Protects == "user" && kind.Silos == 0 {
		out.about = own.Unit().Count(1)
	}
	return out
}

// words returns who adds the noise, and who is trusted with what.
func words(trust string, of wording.Kind) (noise, trusted string) {
	who := of.Reporter()
	switch trust {
	case accounting.Local.String():
		return fmt.Sprintf("each %s (local)", who.One), "nobody"
	case accounting.Split.String():
		return "two operators (split)", "one of two operators"
	case accounting.ShufflePan.String():
		return fmt.Sprintf("%s and stage (shuffle+pan)", who.Many), "stage mixes, except one look; others add noise"
	case accounting.Pan.String():
		return "the stage (pan)", "stage adds noise, except one look"
	case place:
		return place, "the holder of all rows"
	}
	return fmt.Sprintf("all %s (shuffle)", who.Many), "stage mixes, others add noise"
}
