package client

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/panlearn/panlearn/stream/client/consent"
	"github.com/panlearn/panlearn/stream/client/ledger"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// enter makes the task known to the ledger, and finds out whether ledger and participations belong together. It runs
// before the store is pinned: a pinned store whose task the ledger does not know has lost its ledger, and a store that is
// not pinned, though the ledger has events standing, has lost its participations.
func (g *gateway) enter(t *consent.Agreement, pinned bool) error {
	if g.Ledger == nil {
		return nil
	}
	return g.update([]participation.Key{ledger.Everyone}, func(now time.Time, charges [][]ledger.Charge) error {
		i := ledger.Index(charges[0], t.Hash)
		switch {
		case i < 0 && pinned:
			g.log.Warn("the ledger does not know this task, though the state folder took part in it: charged again")
			c := t.Cost(now)
			c.Anonymous, c.Lost = true, true
			charges[0] = ledger.Add(charges[0], c, 1, 1, math.MaxUint64)
		case i < 0:
			if !g.UserKeys {
				if err := g.Policy.AffordTotal(charges[0], t.Cost(now), now); err != nil {
					return err
				}
			}
			charges[0] = ledger.Add(charges[0], t.Cost(now), 0, 0, math.MaxUint64)
		case !pinned && charges[0][i].Standing > 0:
			return consent.Refuse("participations", "missing", "those of the %d events that the ledger has standing in this task: restore the file, or start an empty state folder for other users", charges[0][i].Standing)
		default:
			// A process that died may have settled events and not said so here, or the other way around at a join.
			open := g.charged()
			ledger.Settle(charges[0], t.Hash, charges[0][i].Open-min(open, charges[0][i].Open), now)
		}
		return nil
	})
}

// joins adds to a charge that an event joins a round, and says how many participations that begins: none in a further round
// of its interactive phase, which is charged from the first on.
func joins(c *ledger.Charge, e *event, r *round) (anew uint64) {
	if e.part.Stays(r.phase()) {
		c.Rounds = max(c.Rounds, e.part.Rounds+1)
		return 0
	}
	c.Rounds = max(c.Rounds, 1)
	return 1
}

// charge makes durable in the ledger what taking part costs, before the participation itself is, and answers the events
// that may take part. Where events have no accounts of their own, all of them may or the task is refused.
func (g *gateway) charge(events []*event) ([]*event, error) {
	if g.Ledger == nil {
		return events, nil
	}
	var allowed, refused []*event
	var why *consent.RefusedError // of the last one that is refused alone
	err := g.update(g.accounts(events), func(now time.Time, charges [][]ledger.Charge) error {
		allowed, refused = nil, nil
		c := g.terms.Cost(now)
		everyone, users := charges[0], charges[1:]
		if !g.UserKeys {
			c.Anonymous = true
			if err := g.Policy.AffordTotal(everyone, c, now); err != nil {
				return err
			}
			allowed = events
		}
		for i := range users {
			if errors.As(g.Policy.AffordTotal(ledger.OfUser(users[i], everyone), c, now), &why) {
				refused = append(refused, events[i])
				continue
			}
			own := c
			anew := joins(&own, events[i], g.current)
			users[i] = ledger.Add(users[i], own, 1, anew, 1)
			allowed = append(allowed, events[i])
		}
		anew := uint64(0)
		for _, e := range allowed {
			anew += joins(&c, e, g.current)
		}
		charges[0] = ledger.Add(everyone, c, uint64(len(allowed)), anew, math.MaxUint64)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, e := range refused {
		delete(g.events, e.part.Key)
		if e.part.Outcome() == participation.Counted { // in an earlier round of the phase
			g.answer(e)
			continue
		}
		g.tell(e, Outcome{State: participation.Refused, Round: e.part.Draw.Round, Refused: why})
	}
	if n := len(refused); n > 0 {
		g.log.Warn("users whose total is spent were not sent", "users", n)
	}
	return allowed, nil
}

// charged is how many events have taken part and do not know their outcome.
func (g *gateway) charged() (n uint64) {
	for _, e := range g.events {
		if e.part.State == participation.Charged {
			n++
		}
	}
	return n
}

// resolve tells the ledger of events whose outcome is known. It comes after the outcome is durable: where it is lost, they
// stay open there until the next start.
func (g *gateway) resolve(events []*event) error {
	var known []*event
	for _, e := range events {
		if e.part.State > participation.Charged {
			known = append(known, e)
		}
	}
	if g.Ledger == nil || len(known) == 0 {
		return nil
	}
	return g.update(g.accounts(known), func(now time.Time, charges [][]ledger.Charge) error {
		ledger.Settle(charges[0], g.terms.Hash, uint64(len(known)), now)
		for i := range charges[1:] {
			ledger.Settle(charges[1+i], g.terms.Hash, 1, now)
		}
		return nil
	})
}

// accounts are Everyone's, and the events' own in their order where they have such.
func (g *gateway) accounts(events []*event) []participation.Key {
	keys := []participation.Key{ledger.Everyone}
	if g.UserKeys {
		for _, e := range events {
			keys = append(keys, e.part.Key)
		}
	}
	return keys
}

func (g *gateway) update(accounts []participation.Key, edit func(time.Time, [][]ledger.Charge) error) error {
	err := g.Ledger.Update(time.Now(), accounts, edit)
	var refused *consent.RefusedError
	if err != nil && !errors.As(err, &refused) {
		return fmt.Errorf("ledger: %w", err)
	}
	return err
}
