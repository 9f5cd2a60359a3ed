package device

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// accounts writes into the ledger what taking part in the task costs, and when an outcome is known.
type accounts struct {
	ledger    ledger.Ledger // nil: nothing is kept
	agreement *consent.Agreement
	policy    consent.Policy
	perUser   bool             // a key names the same user in every task, who has an account then
	now       func() time.Time // the time that the ledger is given
	log       *slog.Logger
}

// enter makes the task known to the ledger, and finds out whether ledger and participations belong together: open is
// how many events the store has charged. It runs before the store is pinned: a pinned store whose task the ledger does
// not know has lost its ledger, and a store that is not pinned, though the ledger holds charges for open events, has
// lost its participations.
func (a *accounts) enter(pinned bool, open uint64) error {
	if a.ledger == nil {
		return nil
	}
	return a.update(nil, func(now time.Time, charges [][]ledger.Charge) error {
		task, cost := a.agreement.Hash, a.agreement.Charge(1, now)
		i := ledger.Index(charges[0], task)
		switch {
		case i < 0 && pinned:
			a.log.Warn("the ledger does not know this task, though the state folder took part in it: charged again")
			cost = a.agreement.Charge(a.agreement.Most(), now) // some may have been charged so often
			cost.Anonymous, cost.Lost = true, true
			charges[0] = ledger.Add(charges[0], cost, 1, 1, math.MaxUint64)
		case i < 0:
			if !a.perUser {
				if err := a.policy.AffordTotal(charges[0], cost, now); err != nil {
					return err
				}
			}
			charges[0] = ledger.Add(charges[0], cost, 0, 0, math.MaxUint64)
		case !pinned && charges[0][i].Standing > 0:
			return consent.Refuse("participations", "missing",
				"those of the %d events that the ledger has standing in this task: "+
					"restore the file, or start an empty state folder for other users", charges[0][i].Standing)
		default:
			// A process that died may have settled events and not said so here, or the other way around at a join.
			ledger.Settle(charges[0], task, charges[0][i].Open-min(open, charges[0][i].Open), now)
		}
		return nil
	})
}

// A refusal is an event that does not join, and why.
type refusal struct {
	event *event
	why   *consent.RefusedError
}

// joining returns the charge of an event that joins a round, together with everything it took part in before, and
// the number of participations that begin: 0 in a further round of its interactive phase, which is charged as a
// whole from its first round on.
func (a *accounts) joining(e *event, r *round, now time.Time) (c ledger.Charge, fresh uint64) {
	times, rounds := e.record.Participations(r.phase()), uint32(1)
	c = a.agreement.Charge(times, now)
	c.Anonymous = !a.perUser
	if e.record.Stays(r.phase()) {
		rounds = e.record.Rounds + 1
	} else {
		fresh = 1
	}
	c.Rounds = c.Most - c.Most/times + rounds // those before at most as many as they were charged for
	return c, fresh
}

// charge writes the cost of taking part durably to the ledger, before the participation itself is written. An event
// that has taken part before is refused alone where once more costs more than the policy allows, and so are users with
// an account; else all may take part, or the task is refused by the error.
func (a *accounts) charge(events []*event, r *round) (allowed []*event, refused []refusal, err error) {
	for _, e := range events {
		if why := a.agreement.Again(e.record.Participations(r.phase())); why != nil {
			refused = append(refused, refusal{e, why})
			continue
		}
		allowed = append(allowed, e)
	}
	if a.ledger == nil || len(allowed) == 0 {
		return allowed, refused, nil
	}
	events, dear := allowed, refused
	err = a.update(events, func(now time.Time, charges [][]ledger.Charge) error {
		allowed, refused = nil, dear
		everyone, users := charges[0], charges[1:]
		sum, begun := a.agreement.Charge(1, now), uint64(0)
		verdicts := make(map[float64]error) // of Everyone's account, by epsilon
		for i, e := range events {
			c, fresh := a.joining(e, r, now)
			verdict, known := verdicts[c.Epsilon]
			switch {
			case a.perUser:
				verdict = a.policy.AffordTotal(ledger.OfUser(users[i], everyone), c, now)
			case !known:
				verdict = a.policy.AffordTotal(everyone, c, now)
				verdicts[c.Epsilon] = verdict
			}
			if why, ok := errors.AsType[*consent.RefusedError](verdict); ok {
				if !a.perUser && e.record.State == participation.Fresh {
					return why // so is every other
				}
				refused = append(refused, refusal{e, why})
				continue
			}
			if a.perUser {
				users[i] = ledger.Add(users[i], c, 1, fresh, 1)
			}
			allowed, begun, sum = append(allowed, e), begun+fresh, c.Over(sum)
		}
		if len(allowed) > 0 {
			charges[0] = ledger.Add(everyone, sum, uint64(len(allowed)), begun, math.MaxUint64)
		}
		return nil
	})
	return allowed, refused, err
}

// settle records in the ledger that the outcome of events is known. It is called after the outcome is durable: if
// the call is lost, the events stay open in the ledger until the next start.
func (a *accounts) settle(events []*event) error {
	var known []*event
	for _, e := range events {
		if e.record.State > participation.Charged {
			known = append(known, e)
		}
	}
	if a.ledger == nil || len(known) == 0 {
		return nil
	}
	return a.update(known, func(now time.Time, charges [][]ledger.Charge) error {
		ledger.Settle(charges[0], a.agreement.Hash, uint64(len(known)), now)
		for i := range charges[1:] {
			ledger.Settle(charges[1+i], a.agreement.Hash, 1, now)
		}
		return nil
	})
}

// update edits Everyone's account, and after it the events' own in their order where users have such.
func (a *accounts) update(events []*event, edit func(time.Time, [][]ledger.Charge) error) error {
	keys := []participation.Key{ledger.Everyone}
	if a.perUser {
		for _, e := range events {
			keys = append(keys, e.record.Key)
		}
	}
	err := a.ledger.Update(a.now(), keys, edit)
	var refused *consent.RefusedError
	if err != nil && !errors.As(err, &refused) {
		return fmt.Errorf("ledger: %w", err)
	}
	return err
}
