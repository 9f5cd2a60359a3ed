package planning

import (
	"fmt"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/randomizer/accounting"
)

// charge fills in the plan's epsilon: the largest charge of a user who is in all phases that the same users
// answer. It sets the forecast of each of several such phases to the cost of the phase by itself. It refuses a
// plan whose users would pay more than the budget.
func charge(of *Proposal, p Problem) error {
	budget := accounting.Budget{Epsilon: p.Epsilon, Delta: p.Delta}
	runnable := of.Runnable() == nil
	for i, f := range of.Plan.Phases {
		privacy := &of.Forecasts[i].Privacy
		if together := f.Again || i+1 < len(of.Plan.Phases) && of.Plan.Phases[i+1].Again; !together {
			if privacy.ProvedEpsilon != nil {
				of.Plan.Epsilon = max(of.Plan.Epsilon, *privacy.ProvedEpsilon)
			}
			continue
		}
		privacy.Dim, privacy.RoundsPerUser = int(f.Mechanism.Dim), int(f.RoundsPerUser)
		privacy.ReportBytes = uint64(randomizer.ReportBytes(privacy.Dim, privacy.BitsPerCoordinate))
		alone, err := privacy.Release().Within(budget)
		if err != nil {
			return fmt.Errorf("phase %d: %w", i+1, err)
		}
		privacy.Epsilon = alone.Epsilon
		if privacy.ProvedEpsilon != nil {
			privacy.ProvedEpsilon = &alone.Epsilon
		}
	}
	for _, releases := range of.Stints() {
		if len(releases) == 1 || !runnable {
			continue
		}
		all, err := accounting.RepeatedWithin(1, [][]accounting.Release{releases}, budget)
		if err != nil {
			return fmt.Errorf("%d phases: %w", len(releases), err)
		}
		if all.Epsilon > p.Epsilon {
			return fmt.Errorf("%d phases of the same users cost epsilon %v together, want %v", len(releases), all.Epsilon,
				p.Epsilon)
		}
		of.Plan.Epsilon = max(of.Plan.Epsilon, all.Epsilon)
	}
	return nil
}
