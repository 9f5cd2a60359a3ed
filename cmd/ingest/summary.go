package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/filestore"
)

// printSummary writes the outcomes of the events of a run that ended with err to w: for each kind of outcome that
// occurred, its meaning and the possible remedy. of is the standing of the events' task; kept reports whether a state
// folder remembers the events.
func printSummary(w io.Writer, s device.Summary, of device.Standing, kept bool, err error) error {
	var b strings.Builder
	units := cli.Count(s.Units, "row")
	if of.People {
		units = wording.People.Count(s.Units)
	}
	switch {
	case of.Silo:
		fmt.Fprintf(&b, "%s of %s in all: %d counted", cli.Count(s.Events, "block"), units, s.Counted)
	case of.People:
		fmt.Fprintf(&b, "%s: %d counted", units, s.Counted)
	default:
		fmt.Fprintf(&b, "%s: %d counted", cli.Count(s.Events, "event"), s.Counted)
	}
	if s.Rounds > 0 && !of.Whole { // whose block is in all rounds
		fmt.Fprintf(&b, "; their last reports were of %s", cli.Count(s.Rounds, "round"))
	}
	b.WriteByte('\n')
	say := func(n uint64, what string) {
		if n > 0 {
			fmt.Fprintf(&b, "  %d %s\n", n, what)
		}
	}
	open := "sent, and their round was not closed when this run ended: the same command learns their outcome later, and sends none of them twice"
	if !kept {
		open = "sent, and their round was not closed when this run ended: without --state nobody learns their outcome, and another run sends them again"
	}
	say(s.Open, open)
	doubt := "in doubt: sent, and the broker or the round never said whether they are in; they count as having taken part and are not sent again"
	if errors.Is(err, filestore.ErrRestart) {
		doubt = "in doubt until the next run: the state folder could not be written; the same command knows which of them took part, and sends those alone that did not"
	}
	say(s.Unknown-s.Open, doubt)
	say(s.NotAgain,
		"sent, not counted, and not sent again: one more round would cost their users more than max_epsilon of the policy allows")
	say(s.Uncounted-s.Unused-s.NotAgain, "sent and not counted: no batch holds them, and no round takes them again")
	say(s.Unused, "never sent: no round had a place for them before the task, or this run, ended")
	say(s.Refused,
		"refused and not sent: the policy forbids the task, or what their users may spend is spent (ingest ledger)")
	say(s.Invalid,
		"of them do not fit the task: they took part as zero vectors, which teach nothing (ingest publish --check says why)")
	switch {
	case of.People:
		say(s.LeftOver,
			"rows are in no report: they are of people who fill no block, or came after this silo first took part")
	case of.Whole:
		say(s.LeftOver, "rows are in no report: there are more than when this silo first took part")
	default:
		say(s.LeftOver,
			"rows are in no report: at the end of a file they are too few for a block; as long as the task goes on, a later run takes them with those that are added")
	}
	say(s.Surplus,
		"more rows are beyond those of their person that enter a report (user.items, and in a stream user.wait), and were not sent")
	unnamed := "more rows have no key that can be read, and were not sent"
	if of.People {
		unnamed = "more rows do not say in a way that can be read of whom they are (user.column), and were not sent"
	}
	say(s.Keyless, unnamed)
	_, err = io.WriteString(w, b.String())
	return err
}
