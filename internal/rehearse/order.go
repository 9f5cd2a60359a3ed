package rehearse

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/inspection"
)

// An Order is the order in which the users of a simulation take part.
type Order struct {
	InOrder bool // the order of the file
	Shuffle int  // as ingest publish --shuffle has it; 0: none
}

// Validate refuses an order that cannot be.
func (o Order) Validate() error {
	switch {
	case o.Shuffle < 0 || o.Shuffle > task.MaxShuffle:
		return fmt.Errorf("--shuffle %d: want a number of rows, at most %d", o.Shuffle, task.MaxShuffle)
	case o.Shuffle > 0 && !o.InOrder:
		return errors.New("--shuffle goes with --in-order: else the seed says who takes part when")
	}
	return nil
}

// of returns the rows in the order in which a run takes them.
func (o Order) of(rows []convex.Example, seed uint64) []convex.Example {
	if o.Shuffle <= 1 {
		return rows
	}
	return slices.AppendSeq(make([]convex.Example, 0, len(rows)), task.Shuffled(slices.Values(rows), o.Shuffle,
		sim.Entropy(seed, "order of rows")))
}

// A mixing is the way in which a simulation changes the order of the rows.
type mixing int

const (
	mixed    mixing = iota // the seed mixes rows, or people
	together               // all rows of a silo are in every report of it
	inTurn                 // a silo reports about its rows in their order
)

// mixed returns how the simulation changes the order of its rows.
func (s *Rehearsal) mixed() mixing {
	switch {
	case s.job.Plan.Silos == 0:
		return mixed
	case unitsOf(s.job.Plan) == 0:
		return together
	}
	return inTurn
}

// warn prints a warning if labels come in an order, which a simulation that mixes rows does not show, and which harms
// silos in one pass.
func (o Order) warn(to io.Writer, data string, rows []convex.Example, features *task.FeatureMap, how mixing) {
	if o.InOrder || how == together {
		return
	}
	labels := func(yield func(float64) bool) {
		for _, x := range rows {
			if !yield(x.Label) {
				return
			}
		}
	}
	if position, neighbour, ordered := inspection.Ordered(labels, len(features.Classes())); ordered && how == inTurn {
		fmt.Fprintf(to,
			"the labels of %s come in an order: correlation %.2f with the row's position, %.2f with the label before. In one pass a silo reports about its "+
				"rows in their order, here as on its device, and learns badly if what comes first is not like the rest: mix the rows of its files before, or have "+
				"many passes, schedule.interactive\n", data, position, neighbour)
	} else if ordered {
		fmt.Fprintf(to,
			"the labels of %s come in an order: correlation %.2f with the row's position, %.2f with the label before. Here the seed mixes them; "+
				"--in-order shows what comes of it, and ingest publish --shuffle N mixes them too\n", data, position, neighbour)
	}
}

// feed fills in what reports of the plan are about.
func (s *Rehearsal) feed(c *sim.Config) error {
	switch {
	case c.Plan.Silos > 0 && s.blocks == nil:
		return errors.New("the task has no silos")
	case c.Plan.Silos > 0:
		c.Blocks, c.Silos = s.Blocks(c.Plan, c.Seed)
		c.InOrder = true // whose turns the seed gave
	case c.Blocks != nil: // some of the units
	case s.units != nil:
		c.Blocks = s.units
	default:
		c.Examples = s.order.of(s.Train, c.Seed)
	}
	return nil
}
