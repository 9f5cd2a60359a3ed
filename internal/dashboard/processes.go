package dashboard

import (
	"fmt"
	"strings"
	"time"

	"github.com/panlearn/panlearn/internal/obs"
)

// A Peer is a row of the page about another process.
type Peer struct {
	Name, State string
	Level       Level
	Note        string
}

// said bounds the cause of a fault that a stage reports, in characters.
const said = 200

// peers returns the broker, and each stage process that is asked.
func (st *state) peers(now time.Time) []Peer {
	broker := Peer{Name: "Broker", State: "connected", Level: good}
	switch {
	case !st.brokerLost.IsZero():
		broker.State, broker.Level, broker.Note = "lost", Wrong, "since "+clock(st.brokerLost, now)
	case st.trouble != "" && st.stopped == nil:
		broker.State, broker.Level, broker.Note = "fails the learner", warn, short(st.trouble)
	}
	if st.lost > 0 && broker.Note == "" {
		broker.Level = warn
		broker.Note = fmt.Sprintf("had lost %s of this task, seen %s: %s", countOf(st.lost, "record"), clock(st.lostAt, now),
			sectionLost)
	}
	s, out := &st.stage, []Peer{broker}
	alone := Peer{Name: "Shuffle stage", Level: Info}
	switch {
	case st.stopped != nil:
		alone.State = "not watched any more"
	case s.asked:
		for _, a := range s.answers {
			out = append(out, a.peer())
		}
		return out
	case s.opened:
		alone.State, alone.Note = "not asked",
			fmt.Sprintf("the broker has attempt %d at round %d; --stage-http URL tells more", s.attempt, st.announced.round)
	default:
		alone.State, alone.Note = "not asked", "--stage-http URL tells how it is"
	}
	return append(out, alone)
}

func (a Answer) peer() Peer {
	p := Peer{Name: "Shuffle stage", Level: Info}
	if a.Name != "" {
		p.Name = "Stage " + a.Name
	}
	s := a.Status
	var notes []string
	switch {
	case a.Silence != "":
		p.State, p.Level = "silent: "+string(a.Silence), Wrong
		return p
	case s.Works && s.Round == 0:
		p.State, p.Level = "works", good
		notes = append(notes, "no round is open")
	case s.Works:
		p.State, p.Level = "works", good
		notes = append(notes, fmt.Sprintf("on round %d, attempt %d", s.Round, s.Attempt))
	default:
		p.State = "stands by"
	}
	if s.HelperAway != nil {
		p.State, p.Level = p.State+", and its helper does not answer", warn
	}
	if s.Failures >= failing || s.Failures > 0 && s.Trouble != "" {
		p.State, p.Level = p.State+", and the broker fails it", warn
		notes = append(notes, fmt.Sprintf("%s failed in a row", calls(s.Failures)))
	}
	if s.Trouble != "" {
		notes = append(notes, short(s.Trouble))
	}
	p.Note = strings.Join(append(notes, oddities(s)...), "; ")
	return p
}

// oddities describes the numbers of a stage that matter if they are not zero.
func oddities(s obs.StageStatus) (out []string) {
	if q := s.Queue; q.Messages > 0 {
		text := fmt.Sprintf("waiting for it: %s, %s", countOf(q.Messages, "report"), size(q.Bytes))
		if q.MaxBytes > 0 {
			text += " of at most " + size(q.MaxBytes)
		}
		out = append(out, text)
	}
	if s.Redelivered > 0 {
		out = append(out, fmt.Sprintf("%s came again, and count once", countOf(s.Redelivered, "report")))
	}
	if s.Places.Off != "" {
		out = append(out, s.Places.Off+": devices join before they know that there is room")
	}
	if s.Strange > 0 {
		out = append(out, fmt.Sprintf("%s came for no open attempt, and count nowhere", countOf(s.Strange, "report")))
	}
	return out
}

// full reports whether the queue of reports takes hardly any more.
func full(q obs.Queue) bool { return q.MaxBytes > 0 && float64(q.Bytes) >= 0.95*float64(q.MaxBytes) }

func calls(n int) string { return countOf(uint64(n), "call") }

// short returns a cause in one line, cut if it is long.
func short(cause string) string {
	cause = strings.Join(strings.Fields(cause), " ")
	if r := []rune(cause); len(r) > said {
		return string(r[:said]) + "…"
	}
	return cause
}
