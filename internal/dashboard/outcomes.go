package dashboard

import (
	"github.com/panlearn/panlearn/shuffle/stage"
)

// An Outcome is the number of reports that ended in one way, in words.
type outcome struct{ Words, Name, Count string }

// outcomeWords describes the outcomes of reports.
var outcomeWords = map[stage.Reason]string{
	stage.Accepted:      "accepted and counted",
	stage.WrongRound:    "refused: sent to another round",
	stage.WrongAttempt:  "refused: sent to an attempt that died; its device sends it again",
	stage.WrongTask:     "refused: of another task",
	stage.Malformed:     "refused: no report at all",
	stage.Version:       "refused: of another version of the protocol",
	stage.Bundle:        "refused: more reports in one message than the round allows",
	stage.Length:        "refused: of another length than a report has",
	stage.Undecryptable: "refused: sealed to another key",
	stage.Range:         "refused: a count that no device can have drawn",
	stage.Duplicate:     "refused: counted before",
	stage.Closed:        "refused: came when the round was full; its device joins another",
}

// outcomes returns the outcomes that occurred, and a description of where they were counted.
func (st *state) outcomes() (out []outcome, of string) {
	of = "the batches that this process committed: reports accepted, and messages refused"
	if st.counts != nil {
		of = "the shuffle stage since it started, message by message: what came before it did is missing, an attempt that died is in it, and " +
			st.task.Counted().Many + " counted above are those of committed rounds"
	}
	for _, r := range stage.Reasons() {
		if n := st.totals[r.String()]; n > 0 {
			out = append(out, outcome{outcomeWords[r], r.String(), count(n)})
		}
	}
	if n := st.totals[other]; n > 0 {
		out = append(out, outcome{"refused: for a reason that this program does not know", other, count(n)})
	}
	return out, of
}
