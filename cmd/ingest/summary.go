package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/stream/client"
	"github.com/panlearn/panlearn/stream/client/filestore"
)

// printSummary says what became of the events of a run that ended with err: each kind that there is, what it means and what can be done.
// kept says that a state folder knows them.
func printSummary(w io.Writer, s client.Summary, kept bool, err error) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d counted", cli.Count(s.Events, "event"), s.Counted)
	if s.Units != s.Events {
		fmt.Fprintf(&b, ", blocks of %s in all", cli.Count(s.Units, "row"))
	}
	if s.Rounds > 0 {
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
	say(s.NotAgain, "sent, not counted, and not sent again: one more round would cost their users more than max_epsilon of the policy allows")
	say(s.Uncounted-s.Unused-s.NotAgain, "sent and not counted: no batch holds them, and no round takes them again")
	say(s.Unused, "never sent: no round had a place for them before the task, or this run, ended")
	say(s.Refused, "refused and not sent: the policy forbids the task, or what their users may spend is spent (ingest ledger)")
	say(s.Invalid, "of them do not fit the task: they took part as zero vectors, which teach nothing (ingest publish --check says why)")
	say(s.LeftOver, "rows are in no report: at the end of a file they are too few for a block, and a later run takes them with those that are added; or they came after a silo had first taken part with all of its rows")
	say(s.Keyless, "more rows have no key that can be read, and were not sent")
	_, err = io.WriteString(w, b.String())
	return err
}
