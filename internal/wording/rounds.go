package wording

import (
	"fmt"

	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// Planned describes the rounds of a plan, or of the horizon of a plan without end, as Rounds does.
func Planned(plan *wire.Plan) string {
	if manifest.Gradients(plan).Top > 0 { // cohorts follow the stream
		return Rounds(plan, 0)
	}
	return Rounds(plan, manifest.Planned(plan))
}

// Rounds describes the number of rounds of a plan and the users, or reports of silos, in each round of gradients.
// Their number grows in a practical plan and differs from phase to phase in others. rounds = 0 means without end.
func Rounds(plan *wire.Plan, rounds uint64) string {
	low, high := manifest.Gradients(plan).Cohort, uint64(0)
	looks := uint64(0)
	for _, f := range plan.Phases {
		if f.Statistic != wire.Statistic_STATISTIC_GRADIENT {
			looks += f.Rounds
			continue
		}
		last := manifest.LastCohort(f)
		low, high = min(low, f.Cohort, last), max(high, f.Cohort, last)
		if f.Top > 0 && plan.Silos == 0 {
			low, high = f.Minimum, f.Top
		}
	}
	cohort := fmt.Sprint(low)
	if high > low {
		cohort = fmt.Sprintf("%d to %d", low, high)
	}
	who := Of(plan).InRound().Many
	if rounds == 0 {
		return fmt.Sprintf("rounds without end, of gradients of %s %s", cohort, who)
	}
	if looks > 0 && rounds >= looks {
		return fmt.Sprintf("%s, %d of gradients of %s %s", round.Count(rounds), rounds-looks, cohort, who)
	}
	return fmt.Sprintf("%s of %s %s", round.Count(rounds), cohort, who)
}

// InRound returns the word for those who answer a round: users, or reports of silos.
func (k Kind) InRound() Noun {
	if k.Silos > 0 {
		return Report
	}
	return k.Reporter()
}
