package kills

import (
	"bytes"
	"fmt"

	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
)

// A sum counts the events of a campaign.
type sum struct {
	real, void, reopened                           int
	users, counted, uncounted, unknown, doubt, fit int
}

// audit lists what must hold and does not, and sums up.
func (e *evidence) audit() (violations []string, s sum) {
	violate := func(format string, args ...any) { violations = append(violations, fmt.Sprintf(format, args...)) }
	e.auditRecords(violate, &s)
	e.auditLedger(violate)
	e.auditUsers(violate, &s)
	return violations, s
}

func (e *evidence) auditRecords(violate func(string, ...any), s *sum) {
	for subject, was := range e.seen {
		if m, stands := e.standing[subject]; !stands || !bytes.Equal(m.Data, was) {
			violate("%s was seen and does not stand any more", subject)
		}
	}
	if e.end == nil {
		violate("no End stands")
		return
	}
	if e.end.LastRound != uint64(len(e.rounds)) {
		violate("End at round %d of %d announced", e.end.LastRound, len(e.rounds))
	}
	for n, r := range e.rounds {
		b := r.batch
		if b == nil {
			violate("round %d has no batch", n)
			continue
		}
		if b.Void {
			s.void++
		} else {
			s.real++
			s.users += int(b.Users)
			if r.claim == nil || r.claim.Attempt != b.Attempt || !bytes.Equal(r.claim.ManifestHash, b.ManifestHash) {
				violate("round %d: the batch of attempt %d is not the claimed one", n, b.Attempt)
			}
			at, _ := manifest.PhaseOf(e.task.Plan, r.announced.Step)
			if least := at.Phase.GetMinimum(); b.Users < least || b.Users > at.Cohort {
				violate("round %d: %d users of %d to %d", n, b.Users, least, at.Cohort)
			}
		}
		if len(r.closes) != 1 || r.closes[0].Attempt != b.Attempt || r.closes[0].Void != b.Void ||
			r.closes[0].Cutoff != b.Cutoff {
			violate("round %d: its %d Close do not say what its batch says", n, len(r.closes))
		}
		s.reopened += max(0, r.opens-1)
	}
	steps := s.real
	if manifest.Costliest(e.task.Plan, 0).Interactive() {
		steps += s.void // a round of a stint that is void is a step less
	}
	if uint64(steps) != manifest.Steps(e.task.Plan) && !manifest.Endless(e.task.Plan) {
		violate("%d real batches, %d void: the plan has %d steps", s.real, s.void, manifest.Steps(e.task.Plan))
	}
}

// auditLedger holds the ledger and the status against the batches.
func (e *evidence) auditLedger(violate func(string, ...any)) {
	if !e.ledger.Intact || len(e.ledger.Entries) != len(e.rounds) || len(e.ledger.Chain) != 2*len(e.rounds) {
		violate("ledger: intact %v, %d entries and %d links of %d rounds", e.ledger.Intact, len(e.ledger.Entries),
			len(e.ledger.Chain), len(e.rounds))
		return
	}
	users := uint64(0)
	for i, entry := range e.ledger.Entries {
		r := e.rounds[uint64(i)+1]
		if r == nil || r.batch == nil {
			continue // said above
		}
		kind, want := "spent", r.batch.Users
		if r.batch.Void {
			kind, want = "void", 0
		}
		if users += want; manifest.Costliest(e.task.Plan, 0).Interactive() {
			users = max(users-want, want) // the same ones in every round
		}
		if entry.Round != uint64(i)+1 || entry.Kind != kind || (kind == "spent" && entry.Users != want) ||
			entry.Attempt != r.batch.Attempt {
			violate("ledger: entry %d is %s of round %d, attempt %d, %d users; the batch: %s, attempt %d, %d users",
				i+1, entry.Kind, entry.Round, entry.Attempt, entry.Users, kind, r.batch.Attempt, want)
		}
	}
	if e.status.Users != users || !e.status.Ended || e.status.Round != uint64(len(e.rounds)) {
		violate("status: %d users, ended %v, round %d; the batches: %d users in %d rounds", e.status.Users, e.status.Ended,
			e.status.Round, users, len(e.rounds))
	}
}

// auditUsers compares what devices know with what was released. A user who was counted in one round and again in a
// later one would be missing from the devices' account of the first.
func (e *evidence) auditUsers(violate func(string, ...any), s *sum) {
	counted, unknown := map[uint64]int{}, map[uint64]int{}
	joined := 0
	for _, p := range e.publishers {
		tally := device.Summary{Rounds: p.summary.Rounds, LeftOver: p.left}
		for row, one := range p.rows {
			tally.Events++
			tally.Units += p.block
			joined += int(one.Rounds)
			switch one.State {
			case participation.Fresh:
				tally.Uncounted++
				tally.Unused++
			case participation.Uncounted:
				tally.Uncounted++
			case participation.Counted:
				tally.Counted++
				counted[uint64(one.Draw.Round)]++
			case participation.Unknown:
				tally.Unknown++
				unknown[uint64(one.Draw.Round)]++
			default:
				violate("%s: row %d is %v, and the task is over", p.name, row, one.State)
			}
		}
		tally.Unused, tally.NotAgain = p.summary.Unused, p.summary.NotAgain // which no store knows
		tally.ChargedUncounted = tally.Uncounted - tally.Unused
		if sent := tally.Uncounted - tally.Unused; tally.NotAgain > sent {
			violate("%s: %d events are said to cost too much to go again, and %d uncounted ones were sent", p.name,
				tally.NotAgain, sent)
		}
		if tally != p.summary {
			violate("%s prints %+v, its store says %+v", p.name, p.summary, tally)
		}
		s.counted += int(tally.Counted)
		s.uncounted += int(tally.Uncounted)
		s.unknown += int(tally.Unknown)
	}
	if manifest.Costliest(e.task.Plan, 0).Interactive() { // of which a device keeps the last round, and how many it joined
		if most := len(e.publishers) * int(manifest.Steps(e.task.Plan)); s.users > joined || joined > most {
			violate("%d users in the batches; the devices joined %d rounds of at most %d", s.users, joined, most)
		}
		return
	}
	for n, r := range e.rounds {
		c, u := counted[n], unknown[n]
		delete(counted, n)
		delete(unknown, n)
		if r.batch == nil {
			continue
		}
		users := int(r.batch.Users)
		switch {
		case r.batch.Void && c > 0:
			violate("round %d is void, and %d devices say that it counted them", n, c)
		case r.batch.Void:
		case users > c+u:
			violate("round %d: %d users in the batch; the devices know of %d and allow %d more", n, users, c, u)
		case users < c:
			s.doubt += c - users
		case u == 0:
			s.fit++
		}
	}
	for n, c := range counted {
		violate("%d devices were counted in round %d, which never was", c, n)
	}
	for n, c := range unknown {
		violate("%d devices took part in round %d, which never was", c, n)
	}
}
