package stage

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/grant"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// ErrHidden is returned by Run if the broker does not show the tokens that batches counted: a round that is opened now
// could count their people again.
var ErrHidden = errors.New("the broker does not show all tokens that were counted")

// recalling reads the lists of tokens of all rounds before one that is about to be worked on, from where this process
// stopped reading, and compares them with the batch of the round before. Only the batch decides which lists count:
// those that its chain leads back to. Other lists, of a process that died before its batch or of a stranger, are
// ignored. Nothing is kept before all of it agrees.
//
// What is not found may be hidden by a replica that lags, so it is looked for again for a while.
type recalling struct {
	stateless
	*environment
	pause
	round
	expires time.Time // of our patience

	at     stream.Round // the round of list k, which is read next
	k      uint64
	head   grant.List   // list 1 of it
	hashes []grant.Hash // of its lists so far
	found  []listed     // whole rounds, whether a batch covers them or not
}

// listed holds all lists of one round as they are on the broker, and the chain that they follow.
type listed struct {
	before grant.Chain
	counted
}

// take returns the phase that works on a round: where there are tokens, the lists before it come first. A round whose
// tokens are known, because a replica that lags shows it as the newest, has its claim and its batch, which are waited
// for; it is not opened again (knows).
func (e *environment) take(r round) phase {
	if e.tokens == nil || e.tokens.next >= r.number {
		return e.work(r)
	}
	p := &recalling{environment: e, round: r}
	p.begin()
	return p
}

// knows refuses to open a round unless exactly the tokens of the rounds before it are known.
func (e *environment) knows(r round) error {
	if e.tokens == nil || e.tokens.next == r.number {
		return nil
	}
	return fmt.Errorf("%w: it is at round %d, and the tokens of the rounds before %d are known: it was put back to an older copy",
		ErrHidden, r.number, e.tokens.next)
}

// work returns the phase that finds out how far a round is.
func (e *environment) work(r round) phase {
	if e.operators() {
		return &looking{environment: e, round: r}
	}
	return &inspecting{environment: e, round: r}
}

func (p *recalling) begin() {
	p.at, p.k, p.hashes, p.found = p.tokens.next, 1, nil, nil
}

func (p *recalling) String() string {
	return fmt.Sprintf("reading the tokens that were counted before round %d", p.number)
}

func (p *recalling) next(time.Time) effects {
	switch {
	case p.pending():
		return p.rest()
	case p.at < p.number:
		return effects{call: get, subject: p.Task.Spent(p.at, p.k), needs: leased}
	}
	return effects{call: get, subject: p.Task.Batch(p.number - 1), needs: leased}
}

func (p *recalling) handle(now time.Time, did effects, r result) (phase, error) {
	switch {
	case did.call == wait:
		p.over()
		return p, nil
	case p.at < p.number:
		if r.message == nil || !p.list(r.message.Data) { // a void round, or one that is hidden: then the batch does not fit
			p.at, p.k, p.hashes = p.at+1, 1, nil
		}
		return p, nil
	case r.message == nil:
		return p.hidden(now, did.subject)
	}
	var b wire.Batch
	if _, err := p.environment.read(r.message, p.Identity.Public(), &b); err != nil {
		return nil, err
	}
	if err := manifest.CheckSpent(p.task, &b); err != nil {
		return nil, fmt.Errorf("%s: %w", r.message.Subject, err)
	}
	covered, fits := p.covered(grant.Chain(b.SpentHash))
	if !fits {
		return p.hidden(now, did.subject)
	}
	for _, c := range covered {
		p.tokens.add(c)
	}
	p.tokens.next = p.number
	return p.work(p.round), nil
}

// covered returns the rounds that a batch with this chain covers, in order. fits is false where some of them were not
// found.
func (p *recalling) covered(chain grant.Chain) (out []counted, fits bool) {
	for _, l := range slices.Backward(p.found) {
		if l.after == chain {
			out, chain = append(out, l.counted), l.before
		}
	}
	slices.Reverse(out)
	return out, chain == p.tokens.chain
}

// list takes a list, and reports whether it is one, of no more tokens than a round of its step counts, and goes on
// where the one before it ended.
func (p *recalling) list(data []byte) bool {
	l, err := grant.ParseList(data, p.k)
	if err != nil || l.Spent > p.tokens.most(l.Step) {
		return false
	}
	if p.k == 1 {
		p.head, p.hashes = l, nil
	} else if l.Before != p.head.Before || l.Step != p.head.Step || l.Spent != p.head.Spent ||
		compareHashes(p.hashes[len(p.hashes)-1], l.Hashes[0]) >= 0 {
		return false
	}
	p.hashes = append(p.hashes, l.Hashes...)
	if p.k++; p.k > grant.Parts(l.Spent) {
		p.found = append(p.found, listed{l.Before, counted{round: p.at, step: l.Step, hashes: p.hashes,
			after: grant.Next(l.Before, p.at, l.Step, p.hashes)}})
		p.at, p.k, p.hashes = p.at+1, 1, nil
	}
	return true
}

// hidden begins again, until our patience ends.
func (p *recalling) hidden(now time.Time, subject string) (phase, error) {
	if p.expires.IsZero() {
		p.expires = now.Add(p.lease.patience())
	}
	if !now.Before(p.expires) {
		return nil, fmt.Errorf("%w: %s covers others than the lists before it hold: no round is opened. Put the "+
			"stream %s back as it was; it outlives all rounds", ErrHidden, subject, p.Task.Name(stream.Spends))
	}
	p.begin()
	p.until = now.Add(min(p.jittered(), p.expires.Sub(now)))
	return p, nil
}

// spending puts the lists of a round's tokens, between its claim and its batch. A process that dies here leaves a round
// that is void, and lists that no batch covers.
type spending struct {
	*environment
	release *release
	k       uint64 // next list, from 1
}

func (p *spending) String() string {
	return fmt.Sprintf("putting the tokens that round %d counts", p.release.round.number)
}
func (p *spending) abandon() { p.release.erase() }

func (p *spending) next(time.Time) effects {
	return effects{call: put, subject: p.Task.Spent(p.release.round.number, p.k), data: p.release.lists[p.k-1],
		needs: bound}
}

func (p *spending) handle(now time.Time, did effects, r result) (phase, error) {
	if !r.put.Ours {
		p.abandon()
		p.Logger.Error("the broker has another list of tokens where only this process may put one: the round is void", "subject",
			did.subject)
		return &contested{environment: p.environment, round: p.release.round, attempt: p.release.attempt,
			expires: now.Add(p.lease.patience())}, nil
	}
	if p.k++; p.k > uint64(len(p.release.lists)) {
		return &releasing{environment: p.environment, release: p.release}, nil
	}
	return p, nil
}

// spend fixes the tokens that a release counts, and returns what its Batch says of them: nothing in a task without
// tokens.
func (e *environment) spend(r *release, hashes []grant.Hash) ([]byte, error) {
	if e.tokens == nil {
		return nil, nil
	}
	c, err := e.tokens.ofRound(r.round, hashes)
	if err != nil {
		return nil, err
	}
	r.counted, r.lists = c, grant.Lists(e.tokens.chain, c.step, c.hashes)
	return c.after[:], nil
}

// unspent returns what a void Batch says of tokens: no more than the batch before it.
func (e *environment) unspent() []byte {
	if e.tokens == nil {
		return nil
	}
	return e.tokens.chain[:]
}
