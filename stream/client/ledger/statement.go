package ledger

import "time"

// A Statement is what a ledger says at one time.
type Statement struct {
	Time  time.Time // of the ledger's clock
	Tasks []Charge  // of all users together
	// Epsilon and Delta are what the tasks of the period cost the user who paid most, upper bounds.
	Epsilon, Delta float64
	Users          int // accounts of single users
}

// ReadStatement reads a ledger at a time; its own clock decides where that is later. A period of 0 is for ever.
func ReadStatement(l Ledger, clock time.Time, period time.Duration) (Statement, error) {
	last, err := l.Clock()
	if err != nil {
		return Statement{}, err
	}
	out := Statement{Time: LaterOf(last, clock)}
	for a, err := range l.Accounts() {
		if err != nil {
			return Statement{}, err
		}
		if a.Key == Everyone {
			out.Tasks, a.Charges = a.Charges, nil // and a user who has no account bears what is without a name
		} else {
			out.Users++
		}
		epsilon, delta := Spent(OfUser(a.Charges, out.Tasks), out.Time, period)
		out.Epsilon, out.Delta = max(out.Epsilon, epsilon), max(out.Delta, delta)
	}
	return out, nil
}

// Counts says whether a charge is one of the period that ends at the statement's time.
func (s Statement) Counts(c Charge, period time.Duration) bool {
	return c.Standing > 0 && c.Within(s.Time, period)
}
