package rehearse

import (
	"context"
	"fmt"
	"io"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/stream/manifest"
)

// A ManyPasses holds the gain and the cost of `schedule.interactive: true` for a declaration that has one pass.
type ManyPasses struct {
	Rounds uint32 `json:"rounds"` // of every user, or silo
	// NoiseRatio is the noise of a round's mean, divided by the noise of the mean of one pass's last round.
	NoiseRatio float64 `json:"noise_ratio"`
	// Measured scores it on the data, with the first seed; null in a plan, and where a report is about several rows.
	Measured *Outcome `json:"measured,omitempty"`

	job run.Job
}

// ManyPassesOf returns nil for what is no practical plan in one pass, and for tasks that may not have many.
func ManyPassesOf(job run.Job) *ManyPasses {
	if job.Plan.Practical == nil || job.Problem.Interactive {
		return nil
	}
	spec := *job.Spec
	spec.Schedule.Interactive = true
	if spec.Validate() != nil {
		return nil
	}
	other, err := run.NewJob(&spec)
	if err != nil {
		return nil
	}
	noise := func(j run.Job) float64 { return j.Forecasts[len(j.Forecasts)-1].Privacy.TotalStd() }
	return &ManyPasses{Rounds: manifest.RoundsPerUser(other.Plan), NoiseRatio: noise(other) / noise(job), job: other}
}

func (m *ManyPasses) Print(w io.Writer) error {
	if m == nil {
		return nil
	}
	measured := ""
	if m.Measured != nil {
		measured = fmt.Sprintf(": %s (first seed)", m.Measured)
	}
	_, err := fmt.Fprintf(w,
		"many passes   with schedule.interactive=true everybody answers %d rounds, and has to stay for them; the noise of each is %.2g of "+
			"the last one's in one pass, for the same epsilon%s\n", m.Rounds, m.NoiseRatio, measured)
	return err
}

// inManyPasses returns the same with its scores.
func (s *Rehearsal) inManyPasses(ctx context.Context, progress io.Writer, seed uint64) (*ManyPasses, error) {
	out := ManyPassesOf(s.job)
	if out == nil || s.units != nil || s.blocks != nil {
		return out, nil
	}
	other := *s
	other.job, other.watch = out.job, false
	got, err := other.series(ctx, trials{"many passes", progress, seed, 1}, sim.Config{Plan: out.job.Plan})
	if err != nil {
		return nil, err
	}
	out.Measured = &got.runs[0]
	return out, nil
}

// FewUsers returns the warning that a practical plan has so few users that the model it begins with, or a constant,
// may be the better one; empty elsewhere.
func FewUsers(job run.Job) string {
	if job.Plan.Practical == nil || job.Problem.Continuous != "" {
		return ""
	}
	p := manifest.Practical(job.Plan)
	parameters := p.Parameters() / p.Blocks() * max(1, p.Blocks()-1)
	users := float64(job.Problem.Users) * min(1, job.Problem.Epsilon)
	if users >= leastUsers*float64(parameters) {
		return ""
	}
	of := "a constant may be the better model"
	if p.Start != nil {
		of = "the start may be the better model"
	}
	return fmt.Sprintf(
		"%d users at epsilon %g for %d parameters: %s; want about %.0f users, fewer features or a larger epsilon",
		job.Problem.Users, job.Problem.Epsilon, parameters, of,
		leastUsers*float64(parameters)/min(1, job.Problem.Epsilon))
}

// leastUsers are the users for each parameter, and for each unit of epsilon below 1, from which on plans of random
// tables hardly ever end above the best constant, see TestRandomTables.
const leastUsers = 20
