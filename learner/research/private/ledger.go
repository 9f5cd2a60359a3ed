package private

import (
	"fmt"
	"math"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// A ledger holds what a run has released, for neighbours of which one has one record more. Which release comes next
// is fixed before any data, so that curves and masses add up (docs/proofs/resque.md, "The ledger").
type ledger struct {
	target accounting.Budget
	curve  accounting.Renyi
	// slack is the mass in which releases differ from those that the curve is of, on both sides; drift that on the
	// side that has the record.
	slack, drift float64
}

func newLedger(target accounting.Budget) ledger {
	return ledger{target: target, curve: accounting.NewRenyi()}
}

// An entry is the cost of one release.
type entry struct {
	curve        accounting.Renyi
	slack, drift float64
}

// masses returns the part of delta at eps that slack and drift add.
func (l ledger) masses(eps float64) float64 {
	return ((1+math.Exp(eps))*l.slack + math.Exp(eps)*l.drift) * (1 + 1e-9)
}

// with returns the ledger after so many more releases.
func (l ledger) with(times float64, e entry) ledger {
	l.curve = l.curve.Plus(times, e.curve)
	l.slack += times * e.slack
	l.drift += times * e.drift
	return l
}

// fits reports whether the target holds.
func (l ledger) fits() bool {
	return l.curve.Delta(l.target.Epsilon)+l.masses(l.target.Epsilon) <= l.target.Delta
}

// charge enters a release that is about to start. It refuses one that would break the target, and is then as it was.
func (l *ledger) charge(e entry) error {
	next := l.with(1, e)
	if !next.fits() {
		return fmt.Errorf("ledger: one more release would take delta at epsilon %v above %v", l.target.Epsilon,
			l.target.Delta)
	}
	*l = next
	return nil
}

// cost returns the epsilon at the target's delta.
func (l ledger) cost() cost {
	// At an epsilon below the target's the masses add no more than they do there.
	eps, _ := l.curve.Epsilon(l.target.Delta - l.masses(l.target.Epsilon))
	if l.fits() {
		eps = min(eps, l.target.Epsilon)
	}
	return newCost(eps, l.target.Delta)
}
