package client

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/panlearn/panlearn/stream/client/consent"
	"github.com/panlearn/panlearn/stream/client/ledger"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// accounts writes into the ledger what taking part in the task costs, and when an outcome is known.
type accounts struct {
	ledger    ledger.Ledger // nil: nothing is kept
	agreement *consent.Agreement
	policy    consent.Policy
	perUser   bool // a key names the same user in every task, who has an account then
	log       *slog.Logger
}

// enter makes the task known to the ledger, and finds out whether ledger and participations belong together: open is how many
// events the store has charged. It runs before the store is pinned: a pinned store whose task the ledger does not know has lost
// its ledger, and a store that is not pinned, though the ledger has events standing, has lost its participations.
func (a *accounts) enter(pinned bool, open uint64) error {
	if a.ledger == nil {
		return nil
	}
	return a.update(nil, func(now time.Time, charges [][]ledger.Charge) error {
		task, cost := a.agreement.Hash, a.agreement.Cost(now)
		i := ledger.Index(charges[0], task)
		switch {
		case i < 0 && pinned:
			a.log.Warn("the ledger does not know this task, though the state folder took part in it: charged again")
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
			return consent.Refuse("participations", "missing", "those of the %d events that the ledger has standing in this task: "+
				"restore the file, or start an empty state folder for other users", charges[0][i].Standing)
		default:
			// A process that died may have settled events and not said so here, or the other way around at a join.
			ledger.Settle(charges[0], task, charges[0][i].Open-min(open, charges[0][i].Open), now)
		}
		return nil
	})
}

// joins adds to a charge that an event joins a round, and says how many participations that begins: none in a further round
// of its interactive phase, which is charged from the first on.
func joins(c *ledger.Charge, e *event, r *round) (anew uint64) {
	if e.record.Stays(r.phase()) {
		c.Rounds = max(c.Rounds, e.record.Rounds+1)
		return 0
	}
	c.Rounds = max(c.Rounds, 1)
	return 1
}

// charge makes durable in the ledger what taking part costs, before the participation itself is. Users with an account may be
// refused alone, and why is what refused the last of them; else all may take part, or the task is refused by the error.
func (a *accounts) charge(events []*event, r *round) (allowed, refused []*event, why *consent.RefusedError, err error) {
	if a.ledger == nil {
		return events, nil, nil, nil
	}
	err = a.update(events, func(now time.Time, charges [][]ledger.Charge) error {
		allowed, refused = nil, nil
		c := a.agreement.Cost(now)
		everyone, users := charges[0], charges[1:]
		if !a.perUser {
			c.Anonymous = true
			if err := a.policy.AffordTotal(everyone, c, now); err != nil {
				return err
			}
			allowed = events
		}
		for i := range users {
			if errors.As(a.policy.AffordTotal(ledger.OfUser(users[i], everyone), c, now), &why) {
				refused = append(refused, events[i])
				continue
			}
			own := c
			anew := joins(&own, events[i], r)
			users[i] = ledger.Add(users[i], own, 1, anew, 1)
			allowed = append(allowed, events[i])
		}
		anew := uint64(0)
		for _, e := range allowed {
			anew += joins(&c, e, r)
		}
		charges[0] = ledger.Add(everyone, c, uint64(len(allowed)), anew, math.MaxUint64)
		return nil
	})
	return allowed, refused, why, err
}

// settle says that the outcome of events is known. It comes after the outcome is durable: where it is lost, they stay open in
// the ledger until the next start.
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
	err := a.ledger.Update(time.Now(), keys, edit)
	var refused *consent.RefusedError
	if err != nil && !errors.As(err, &refused) {
		return fmt.Errorf("ledger: %w", err)
	}
	return err
}
