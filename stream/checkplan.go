package stream

import (
	"errors"
	"fmt"
	"math"

	"github.com/panlearn/panlearn/stream/wire"
)

// validatePhases looks at each phase alone; whether they make a plan is manifest.CheckTask's question.
func validatePhases(p *wire.Plan) error {
	if n := len(p.Phases); n == 0 || n > MaxPhases {
		return fmt.Errorf("plan has %d phases: want 1 to %d", n, MaxPhases)
	}
	for i, f := range p.Phases {
		if err := validatePhase(f); err != nil {
			return fmt.Errorf("plan.phases[%d]: %w", i, err) // of one: errors stay short
		}
	}
	return nil
}

func validatePhase(f *wire.Phase) error {
	if f == nil {
		return errors.New("missing")
	}
	err := errors.Join(atLeastOne("rounds", f.Rounds), cohort(f.Cohort, f.Minimum), mechanism(f.Mechanism),
		smoothing(f.Smoothing),
		statistic(f.Statistic, f.Smoothing))
	if f.Rounds > f.Users && f.RoundsPerUser <= 1 {
		err = errors.Join(err, fmt.Errorf("rounds %d: want at most users %d", f.Rounds, f.Users))
	}
	return err
}

// statistic refuses a statistic that this program does not know, and an envelope of a statistic that is no gradient.
func statistic(s wire.Statistic, smoothing float64) error {
	if _, known := wire.Statistic_name[int32(s)]; !known {
		return fmt.Errorf("statistic %d: unknown", s)
	}
	if s != wire.Statistic_STATISTIC_GRADIENT && smoothing != 0 {
		return fmt.Errorf("smoothing %v: want 0 where no gradient is reported", smoothing)
	}
	return nil
}

func smoothing(b float64) error {
	if !(b >= 0) || math.Signbit(b) || math.IsInf(b, 0) {
		return fmt.Errorf("smoothing %v: want a finite number of at least 0", b)
	}
	return nil
}
