package device

import (
	"cmp"
	"fmt"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/grant"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A contract holds what this device agreed to in a task, and what its store has to say about that. All but terms and
// unpinned is written before agreed is closed, and may then be read by any goroutine.
type contract struct {
	adapt     func(*consent.Agreement) // changes an agreement for a test; nil: nothing does
	agreed    chan struct{}
	agreement *consent.Agreement  // nil until there is one
	order     [32]byte            // seed of shuffled rows
	kept      uint64              // rows of a silo that took part before; 0: none did
	people    []participation.Key // of a silo, as a store has them; nil: nobody is in a block

	// by which this device draws and pays: the agreement, or what a silo makes of it by its size; nil until that is known
	terms    *consent.Agreement
	tokens   *grant.Task        // nil: the task needs none; written with agreement
	unpinned *participation.Pin // what the first event writes before anything is done with it; nil: the store is pinned
}

// bound returns the terms, or the agreement while a silo's size is not known.
func (c *contract) bound() *consent.Agreement { return cmp.Or(c.terms, c.agreement) }

// A proposal is a task that the policy agrees to, before it is known that the ledger does.
type proposal struct {
	agreement, terms *consent.Agreement
	hash             stream.Hash
	tokens           *grant.Task
	source           string             // that the store is, or will be, pinned to
	pinned           *participation.Pin // nil: the store belongs to no task yet
}

// propose decides whether to take part in a task, by the policy, by what the store is pinned to (nil: nothing), and by
// the longest message that the broker takes (0: any). adapt changes the agreement for a test, or is nil.
func (c *Settings) propose(t *wire.Task, hash stream.Hash, pinned *participation.Pin, maxPayload int,
	adapt func(*consent.Agreement)) (*proposal, error) {
	var known *stream.Hash
	if pinned != nil {
		known = &pinned.Task
	}
	if err := c.Policy.CheckPin(t, hash, known); err != nil {
		return nil, err
	}
	agreement, err := c.Policy.CheckTask(t, hash)
	if err == nil && c.Spec != nil {
		err = agreement.CheckDeclaration(c.Spec)
	}
	if err != nil {
		return nil, err
	}
	if agreement.Spec.Privacy.OneOperator() {
		c.Logger.Warn("one operator runs both stages of this task, as it declares: together they read every report. It is for trying "+
			"out", "task", t.Name)
	}
	source := c.source(agreement)
	if pinned != nil && pinned.Source != source {
		return nil, consent.Refuse("source", fmt.Sprintf("%q", source),
			"%q, as before: users could take part twice under other keys", pinned.Source)
	}
	for i, f := range t.Plan.Phases {
		bundle := min(c.Bundle, int(f.Mechanism.MaxBundle))
		if bundle < c.Bundle {
			c.Logger.Warn("the task takes smaller bundles", "phase", i+1, "bundle", c.Bundle, "max_bundle", bundle)
		}
		size := manifest.PartOf(t, agreement.Phases[i].Params).ReportSize(t.Suite, bundle)
		if maxPayload > 0 && size > maxPayload {
			return nil, fmt.Errorf(
				"a message of %d reports has %d bytes, the broker takes %d: use smaller bundles, or raise its max_payload",
				bundle, size, maxPayload)
		}
	}
	var tokens *grant.Task
	if agreement.HasGrants() {
		if c.Grants == nil || c.GrantStore == nil {
			return nil, errNoSource()
		}
		if tokens, err = grant.Of(t.IssuerKey, hash); err != nil {
			return nil, err
		}
	}
	if adapt != nil {
		adapt(agreement)
	}
	if err := c.checkBlocks(agreement); err != nil {
		return nil, err
	}
	terms := agreement
	switch silo := agreement.Spec.Silo != nil; {
	case silo && pinned != nil:
		terms, err = agreement.Kept(pinned.Units, pinned.Trials)
	case silo && agreement.Whole():
		terms = nil // all of its rows are read first
	case silo:
		terms, err = agreement.Own(agreement.Units())
	}
	if err != nil {
		return nil, err
	}
	return &proposal{agreement: agreement, terms: terms, tokens: tokens, hash: hash, source: source, pinned: pinned}, nil
}

// accept agrees to a proposal. A store that belongs to no task is pinned later, with what is unpinned.
func (c *contract) accept(p *proposal, seed [32]byte) {
	c.tokens = p.tokens
	if c.agreement, c.terms = p.agreement, p.terms; p.pinned != nil {
		c.order, c.kept, c.people = p.pinned.Order, p.pinned.Units, p.pinned.People
	} else {
		c.order = seed
		c.unpinned = &participation.Pin{Task: p.hash, Source: p.source, Order: seed}
		if p.agreement.Spec.Silo != nil && p.terms != nil {
			c.unpinned.Units, c.unpinned.Trials = p.terms.Units(), p.terms.Trials()
		}
	}
	close(c.agreed)
}

// agree reads the Task and decides, once, whether to take part.
func (c *core) agree() error {
	got, pin := c.do(effect{call: readTask}), result{}
	if !got.found {
		return nil
	}
	if pin = c.do(effect{call: readPin}); pin.err != nil {
		return fmt.Errorf("read pin: %w", pin.err)
	}
	p, err := c.settings.propose(got.task, got.hash, pin.pin, got.maxPayload, c.contract.adapt)
	if err != nil {
		return err
	}
	if c.compareClock(); c.clock.unknown {
		return nil
	}
	if got := c.do(effect{call: enterLedger, agreement: p.agreement, terms: p.terms, pinned: pin.found,
		open: uint64(len(c.events))}); got.err != nil {
		return got.err
	}
	c.log.Info("agreed to the task", "task_hash", fmt.Sprintf("%x", p.hash), "trust", p.agreement.Spec.Privacy.Trust,
		"epsilon", cmp.Or(p.terms, p.agreement).Guarantee.Epsilon, "delta", p.agreement.Delta,
		"honest_fraction_of_every_cohort", p.agreement.HonestFraction.String())
	if p.tokens != nil {
		c.log.Info("each report has a token, which the issuer of the task gives one of to each person", "issuer_key",
			fmt.Sprintf("%x", grant.KeyID(p.agreement.Task.IssuerKey)))
	}
	c.contract.accept(p, c.chance.seed())
	if p.tokens != nil { // before there is an event, and whether or not one ever comes
		c.do(effect{call: askForToken})
	}
	c.do(effect{call: tellProgress})
	return nil
}
