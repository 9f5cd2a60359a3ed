// Package wording chooses the nouns that describe a task: reports are counted, units are protected.
package wording

import (
	"fmt"
	"strings"

	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A Kind holds the facts that decide the words of a plan. Documents about a task have it.
type Kind struct {
	Protects    string `json:"protects"`         // event, or user, as privacy.unit
	Units       uint64 `json:"units_per_report"` // K: a report is about at least as many units
	Silos       uint64 `json:"silos"`            // N; 0: everybody reports for himself
	Interactive bool   `json:"interactive"`      // a reporter takes part in several rounds with the same rows
	Once        bool   `json:"once,omitempty"`   // one process has all units and releases one model, without rounds
}

// Of returns the kind of a plan.
func Of(plan *wire.Plan) Kind {
	k := Kind{Protects: "event", Units: max(1, manifest.Gradients(plan).GetMechanism().GetUnits()), Silos: plan.GetSilos(),
		Interactive: manifest.RoundsPerUser(plan) > 1}
	if plan.GetUnit() == wire.Unit_UNIT_USER {
		k.Protects = "user"
	}
	k.Once = schedule.Curated(plan.GetAlgorithm())
	return k
}

func (k Kind) byUser() bool { return k.Protects == "user" }

// Together reports whether all rows are in one place, the only silo.
func (k Kind) Together() bool { return k.Silos == 1 }

// A Noun is a word and its plural.
type Noun struct{ One, Many string }

// Of returns the word for so many.
func (n Noun) Of(k uint64) string {
	if k == 1 {
		return n.One
	}
	return n.Many
}

// A returns the word with its article.
func (n Noun) A() string {
	if n == event {
		return "an " + n.One
	}
	return "a " + n.One
}

// Count returns the number with the word.
func (n Noun) Count(k uint64) string { return fmt.Sprintf("%d %s", k, n.Of(k)) }

// Report is the word for the reports that rounds count in every task.
var Report = Noun{"report", "reports"}

// People is the word for the units of a holder of people's rows.
var People = person

var (
	user   = Noun{"user", "users"}
	silo   = Noun{"silo", "silos"}
	event  = Noun{"event", "events"}
	record = Noun{"record", "records"}
	person = Noun{"person", "people"}
	row    = Noun{"row", "rows"}
	round  = Noun{"round", "rounds"}
)

// Reporter returns the word for who sends reports, at most one to a round: a user or a silo.
func (k Kind) Reporter() Noun {
	if k.Silos > 0 {
		return silo
	}
	return user
}

// Counted returns the word for the sum over rounds: users, who take part once; silos that answer all rounds;
// reports of silos that answer some.
func (k Kind) Counted() Noun {
	if k.Silos > 0 && !k.Interactive {
		return Report
	}
	return k.Reporter()
}

// Row returns a row of the data: an event, or a record that a silo has.
func (k Kind) Row() Noun {
	if k.Together() {
		return row
	}
	if k.Silos > 0 {
		return record
	}
	return event
}

// Unit returns the word for the protected unit: an event, a user, a silo's record, or a person of whom a silo
// has records.
func (k Kind) Unit() Noun {
	switch {
	case !k.byUser():
		return k.Row()
	case k.Silos > 0:
		return person
	}
	return user
}

// One describes one unit, and its owner.
func (k Kind) One() string {
	switch {
	case k.byUser() && k.Together():
		return "all rows of one person"
	case k.Together():
		return "one row"
	case k.byUser() && k.Silos > 0:
		return "all records of one person at one silo"
	case k.byUser():
		return "all events of one user"
	case k.Silos > 0:
		return "one record of one silo"
	}
	return "one event of one user"
}

// Protected describes one unit, in how many rounds it is protected, and what may replace it.
func (k Kind) Protected() string {
	when, other := " in one round", "any other"
	if k.byUser() {
		when, other = "", "any others"
	}
	switch {
	case k.Once:
		when = ""
	case k.Interactive && k.Together():
		when = " in all rounds"
	case k.Interactive:
		when = fmt.Sprintf(" in all rounds that the %s answers", k.Reporter().One)
	}
	return fmt.Sprintf("%s%s, replaced by %s", k.One(), when, other)
}

// OfPeople replaces the words for people and a person in a text by those for the task's unit.
func (k Kind) OfPeople(text string) string {
	unit := k.Unit()
	return strings.NewReplacer(person.Many, unit.Many, person.One, unit.One).Replace(text)
}

// All returns the word for the size of a plan: its users, or the units of all silos.
func (k Kind) All() Noun {
	if k.Silos > 0 {
		return k.Unit()
	}
	return user
}

// Charged returns the unit that is charged most.
func (k Kind) Charged() string {
	if k.Once {
		return k.Protected()
	}
	if k.byUser() {
		return fmt.Sprintf("the %s who is charged most", k.Unit().One)
	}
	return fmt.Sprintf("the %s that is charged most", k.Unit().One)
}

// Against describes the people from whom a trust protects.
func (k Kind) Against(t accounting.Trust) string {
	switch {
	case t == accounting.Local && k.Together():
		return "everybody who does not have the rows: those who see models, batches or reports"
	case t == accounting.Local:
		return fmt.Sprintf("everybody: learner, shuffle stage, broker and all other %s together", k.Reporter().Many)
	case t.HasOperators():
		return "everybody: learner, broker, all other users and one of the two operators together"
	case t.HasFloors():
		return "everybody downstream of the shuffle stage, and one look into its memory"
	}
	return "everybody downstream of the shuffle stage"
}

// OneOperator is written after an epsilon of trust split where the task declares that one party runs both operators.
const OneOperator = ": one operator runs both here, as the task declares, so that nobody is protected from it"

// Assuming returns the assumption behind an epsilon of a trust, to be written after it: a clause, or nothing,
// see accounting.Trust.Assuming.
func (k Kind) Assuming(trust string, honest accounting.Fraction) string {
	t, err := accounting.ParseTrust(trust)
	if err != nil {
		return "" // of another version
	}
	return t.Assuming(honest, k.Reporter().Many)
}
