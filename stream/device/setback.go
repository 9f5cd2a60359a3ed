package device

import (
	"errors"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// A setback finds out that the broker was put back to an earlier time, or that the learner announced a round twice: the
// broker lacks a known round, or has another one under its number. It lasts until a round is announced that is new to
// this device.
type setback struct {
	rounds *rounds
	older  stream.Round // newest known round that the broker lacks, or has replaced by another; 0: none
	since  time.Time    // when that was first seen
}

// mark notes, logs and tells up to which round the broker is older.
func (s *setback) mark(number stream.Round, what string) {
	r := s.rounds
	if s.older == 0 {
		s.since = r.now()
	}
	s.older = number
	r.log.Error(what+": the learner and the broker were put back to an earlier time (docs/how-to/runbook.md, state "+
		"folder and broker of different times), or somebody announces a round twice. Users of what is lost stay charged; "+
		"nobody answers again until a round is announced that is new to this device", "round", number)
	r.do(effect{call: tellProgress})
}

// markReplaced notes that the learner announced another round under a number that this device knows. The device takes
// no part in that round: its users, or others of the same device, may have taken part in the first. Nobody joins the
// lost round either, and once the task has gone on with a new round, no record will show who was counted in it.
func (s *setback) markReplaced(number stream.Round) {
	if s.older < number {
		s.mark(number, "another round stands under a number that this device knows")
	}
	s.rounds.known.lose(number)
}

// isReplaced reads whether the broker has another round, signed by the learner, than the known one under a number.
// Rounds of an interactive phase are never taken as replaced, because all of them have the same users.
func (s *setback) isReplaced(one *round) bool {
	if one.message == nil || one.place.Interactive() {
		return false
	}
	if got := s.rounds.do(effect{call: readRound, number: one.number}); got.found && got.hash != one.manifest {
		s.markReplaced(one.number)
		return true
	}
	return false
}

// checkNewest reads, after the connection was lost, whether the newest known round is still on the broker, if none is
// newer, and reports whether it has to be read again. A read that finds nothing decides nothing: a replica that lags
// may have answered. So nobody joins while the round is missing. Only when it has been missing for longer than a
// replica lags does the device log that and wait for a newer one.
func (s *setback) checkNewest() (again bool) {
	newest := s.rounds.known.newest
	if newest == nil || newest.lost {
		return false
	}
	switch got := s.rounds.do(effect{call: checkRound, number: newest.number}); {
	case errors.Is(got.err, stream.ErrNotFound) && s.older < newest.number:
		if now := s.rounds.now(); newest.missing.IsZero() {
			newest.missing = now
			return true
		} else if now.Sub(newest.missing) <= lag {
			return true
		}
		newest.missing = time.Time{}
		newest.claimed = true // an event that joined it now would be charged for nothing
		s.mark(newest.number, "the broker no longer shows the newest round that this device knows")
	case got.err == nil:
		newest.missing = time.Time{}
		if got.found && got.hash != newest.manifest {
			s.markReplaced(newest.number)
		}
	}
	return !newest.missing.IsZero()
}
