package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/inspection"
)

// An arrival is the order in which the users of a simulation take part.
type arrival struct {
	inOrder bool // that of the file
	shuffle int  // as ingest publish --shuffle has it; 0: none
}

func (a *arrival) flags(flags *pflag.FlagSet) {
	flags.BoolVar(&a.inOrder, "in-order", false,
		"users take part in the order of the file, as with ingest publish; else the seed says who does when")
	flags.IntVar(&a.shuffle, "shuffle", 0,
		"with --in-order, take one of `N` rows at a time, as ingest publish --shuffle does")
}

func (a *arrival) check() error {
	switch {
	case a.shuffle < 0 || a.shuffle > task.MaxShuffle:
		return cli.Usagef("--shuffle %d: want a number of rows, at most %d", a.shuffle, task.MaxShuffle)
	case a.shuffle > 0 && !a.inOrder:
		return cli.Usagef("--shuffle goes with --in-order: else the seed says who takes part when")
	}
	return nil
}

// order returns the rows in the order in which a run takes them.
func (a *arrival) order(rows []convex.Example, seed uint64) []convex.Example {
	if a.shuffle <= 1 {
		return rows
	}
	return slices.AppendSeq(make([]convex.Example, 0, len(rows)), task.Shuffled(slices.Values(rows), a.shuffle,
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
func (s *simulation) mixed() mixing {
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
func (a *arrival) warn(to io.Writer, data string, rows []convex.Example, features *task.FeatureMap, how mixing) {
	if a.inOrder || how == together {
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

// data fills in what reports of the plan are about.
func (s *simulation) data(c *sim.Config) error {
	switch {
	case c.Plan.Silos > 0 && s.blocks == nil:
		return errors.New("the task has no silos")
	case c.Plan.Silos > 0:
		b := s.blocks(c.Plan, c.Seed)
		c.Blocks, c.Silos, c.InOrder = b.all, b.silos, true // whose turns the seed gave
	case c.Blocks != nil: // some of the units
	case s.units != nil:
		c.Blocks = s.units
	default:
		c.Examples = s.order.order(s.train, c.Seed)
	}
	return nil
}
