package ledger

import (
	"math"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// A Charge holds the cost of one task to one account.
type Charge struct {
	Task stream.Hash
	Name stream.Task
	// Epsilon is the composed cost, as the device computed it, of all participations of the event that had most:
	// one for each round, or interactive phase, that an event joined.
	Epsilon float64
	Delta   float64
	// Rounds is the number of rounds that the most frequent user answered, Most the number that the cost covers:
	// the rounds of an interactive phase are charged together, before the first.
	Rounds, Most uint32
	// Standing counts participations; without any the task costs nothing. Those of different users cost each of them
	// no more than their own. Nothing is given back: that an event is in no batch rests on acknowledgements, which are
	// the broker's word, and so an event that takes part again pays again.
	Standing uint64
	// Open counts the participations whose outcome is not known. Their events may be sent again, and released, however
	// old they are.
	Open uint64
	// Anonymous reports that some event was charged to Everyone alone: any user may be behind it.
	Anonymous bool
	// Lost reports that the task's events had taken part already when the ledger began. How many of them are open
	// is not known.
	Lost bool
	// ByUser reports that the epsilon covers everything that one person contributes; otherwise it covers one event
	// of somebody, which is a weaker statement.
	ByUser bool
	At     time.Time // of the newest charge or outcome, by the clock of the ledger
}

// Spent adds up what charges cost in the period that ends now, upper bounds. A period of 0 is for ever. Privacy
// composes by addition whatever the order, and though later tasks may depend on earlier ones.
func Spent(charges []Charge, now time.Time, period time.Duration) (epsilon, delta float64) {
	for _, c := range charges {
		if c.Standing == 0 || !c.within(now, period) {
			continue
		}
		epsilon, delta = addUp(epsilon, c.Epsilon), addUp(delta, c.Delta)
	}
	return epsilon, delta
}

// within reports whether a charge counts in the period that ends now. An open or lost charge counts whatever its
// age.
func (c Charge) within(now time.Time, period time.Duration) bool {
	return period == 0 || c.Open > 0 || c.Lost || now.Sub(c.At) <= period
}

// addUp rounds a sum up: what is printed and compared is never below the true sum.
func addUp(a, b float64) float64 {
	if a == 0 || b == 0 {
		return a + b
	}
	return math.Nextafter(a+b, math.Inf(1))
}

// OfUser returns the charges that one user may have to bear: the user's own, and the anonymous charges of Everyone.
func OfUser(own, everyone []Charge) []Charge {
	out := slices.Clone(own)
	for _, c := range everyone {
		if !c.Anonymous {
			continue
		}
		if i := Index(out, c.Task); i >= 0 {
			c.Standing, c.Open = max(c.Standing, out[i].Standing), max(c.Open, out[i].Open)
			out[i] = c.Over(out[i])
			continue
		}
		out = append(out, c)
	}
	return out
}

// Over returns the more expensive and newer of each part of two charges of one task, with the participations of c.
func (c Charge) Over(old Charge) Charge {
	c.Epsilon, c.Delta = max(c.Epsilon, old.Epsilon), max(c.Delta, old.Delta)
	c.Rounds, c.Most = max(c.Rounds, old.Rounds), max(c.Most, old.Most)
	c.Anonymous, c.Lost = c.Anonymous || old.Anonymous, c.Lost || old.Lost
	c.ByUser = c.ByUser && old.ByUser
	if old.At.After(c.At) {
		c.At = old.At
	}
	return c
}

// Index returns the index of a task's charge, -1 if there is none.
func Index(charges []Charge, task stream.Hash) int {
	return slices.IndexFunc(charges, func(c Charge) bool { return c.Task == task })
}

// Add adds a charge of n events to an account; fresh of them did not take part before, and at most most can be open.
func Add(charges []Charge, c Charge, n, fresh, most uint64) []Charge {
	i := Index(charges, c.Task)
	if i < 0 {
		i, charges = len(charges), append(charges, c)
	}
	old := charges[i]
	c.Standing = old.Standing + min(fresh, most-old.Standing)
	if c.Standing == 0 && n > 0 {
		c.Standing = 1 // the ledger forgot the events that took part, and they stay charged
	}
	c.Open = min(old.Open+min(n, most-old.Open), c.Standing) // of events from before the ledger none is counted
	charges[i] = c.Over(old)
	return charges
}

// Settle notes that the outcome of n events of a task is known now.
func Settle(charges []Charge, task stream.Hash, n uint64, now time.Time) {
	if i := Index(charges, task); i >= 0 && n > 0 {
		c := &charges[i]
		c.Open -= min(n, c.Open)
		if now.After(c.At) {
			c.At = now
		}
	}
}

// A Statement summarises a ledger at one time.
type Statement struct {
	Time  time.Time // of the ledger's clock
	Tasks []Charge  // of all users together
	// Epsilon and Delta bound the cost of the period's tasks to the event that paid most, or to the user if users have
	// accounts.
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

// Counts reports whether a charge belongs to the period that ends at the statement's time.
func (s Statement) Counts(c Charge, period time.Duration) bool {
	return c.Standing > 0 && c.within(s.Time, period)
}
