package tune

import (
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/stream/manifest"
)

// simulated returns the run of a job in which at most that many users are simulated one by one. Where a task has more,
// every cohort is represented by a sample of it, and the estimate has the Gaussian noise of the whole cohort instead of
// the randomizer's. Noise is not scaled with the sample: it has to be the task's; the sample's own error is larger than
// the task's. A task whose cohorts follow its stream keeps them, and ends earlier. simulated changes the job's plan.
func simulated(job run.Job, most uint64) sim.Config {
	out := sim.Config{Plan: job.Plan, Loss: job.Loss, Score: job.Score(), InOrder: manifest.Endless(job.Plan)}
	n := manifest.Users(job.Plan)
	if n <= most {
		return out
	}
	if last := job.Plan.Phases[len(job.Plan.Phases)-1]; last.Top > 0 { // which goes on for ever, and so as well for fewer
		looks := n - last.Users
		last.Users = max(most, looks+last.Minimum) - looks
		return out
	}
	share := (n + most - 1) / most
	std := make([]float64, len(job.Plan.Phases)) // of a planned cohort's mean, times the users of its sample
	for i, f := range job.Plan.Phases {
		f.Cohort = max(1, f.Cohort/share)
		f.Users = f.Cohort
		if f.RoundsPerUser == 1 {
			f.Users *= f.Rounds
		}
		std[i] = f.Mechanism.ClipNorm * job.Forecasts[i].Privacy.TotalStd() * float64(f.Cohort)
	}
	out.NoiseStd = func(phase int, users uint64) float64 { return std[phase] / float64(users) }
	return out
}
