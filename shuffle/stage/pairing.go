package stage

import (
	crand "crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/internal/panics"
	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/grant"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A pairing replaces the mixer in an attempt of two operators: it holds the leader's accumulator, the helper's part of
// the attempt, and the state of the exchange. Run's goroutine alone uses it, except that workers run jobs.
type pairing struct {
	x        split.Attempt // zero before the helper has joined
	leader   *split.Leader // nil before
	workers  []*leadWorker
	tokens   map[shuffle.ReportID]grant.Hash // of users whom the helper has not decided
	key      []byte                          // the helper's HPKE key of the attempt
	instance split.Instance

	exchange exchange
	closing  bool        // no more is taken: the requests without a reply decide whether the attempt ends
	gone     *split.Gone // the helper's word that it does not hold the attempt
	shown    bool        // a Share of the round was shown: the attempt is over
}

// entropyLabel labels the secret of the key file that goes into the leader's floors.
const entropyLabel = "leader's floors"

// join takes the helper's Join of the attempt. An error means that no device acts on it, so that the attempt is of no
// use.
func (a *attempt) join(m *stream.Message, open []byte, now time.Time) error {
	var j wire.Join
	if _, err := a.read(m, a.Leader.HelperKey, &j); err != nil {
		return err
	}
	x := split.Attempt{Task: a.taskHash, Round: uint64(a.round.number), Number: uint64(a.number),
		Open: stream.HashOf(open), Join: stream.HashOf(m.Data)}
	keys := seal.SharedKeys{Leader: a.opener.key.Public(), Helper: j.PublicKey}
	switch {
	case stream.Hash(j.OpenHash) != x.Open:
		return fmt.Errorf("%s is of another Open than the one that stands", m.Subject)
	case stream.Hash(j.ManifestHash) != a.manifest || j.Suite != a.task.Suite:
		return fmt.Errorf("%s is of another manifest or suite", m.Subject)
	}
	if err := keys.Check(a.task.Suite); err != nil {
		return fmt.Errorf("%s: %w", m.Subject, err)
	}
	plain, err := a.opener.key.OpenVerifyKey(a.taskHash, &j)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Subject, err)
	}
	var key split.VerifyKey
	if copy(key[:], plain); len(plain) != len(key) || key.Hash() != split.Hash(j.VerifyKeyHash) {
		return fmt.Errorf("%s: its verify key has another hash", m.Subject)
	}
	leader, err := split.NewLeader(splitwire.ConfigOf(a.round.mixer, x, a.manifest, key, a.Limits.MaxPayload))
	if err != nil {
		return err
	}
	p := a.pair
	for range a.Workers {
		w := new(leadWorker)
		if w.Worker, err = leader.Worker(w.opener(a, splitwire.ContextOf(x, a.manifest))); err != nil {
			leader.Erase()
			return err
		}
		p.workers = append(p.workers, w)
	}
	p.x, p.leader, p.key, p.instance = x, leader, j.PublicKey, split.Instance(j.Instance)
	p.tokens = make(map[shuffle.ReportID]grant.Hash)
	p.exchange = exchange{lease: a.LeaseTTL, heard: now}
	a.begin(now)
	return nil
}

// unjoined reports whether the attempt waits for the helper.
func (a *attempt) unjoined() bool { return a.pair != nil && a.pair.leader == nil }

// shared handles what an attempt of two operators has besides: the helper's Join, and that the attempt died with it.
// It returns p where nothing of this came.
func (p *collecting) shared(now time.Time, did effects, r result) (phase, error) {
	a := p.attempt
	switch {
	case did.call == wait:
		p.joining = now // woken, or time to look
	case did.subject == p.Task.Join(a.round.number, a.number):
		p.joining = now.Add(p.jittered())
		if r.message == nil {
			p.helperAway(a.term.started, now.Sub(a.term.started) > 2*p.LeaseTTL)
			return p, nil
		}
		if err := a.join(r.message, p.open, now); err != nil {
			p.Logger.Warn("a Join that no device acts on: opening the round again", "error", err)
			p.abandon()
			return again(p.environment, a.round, a.number+1, now), nil
		}
		p.helper = time.Time{}
		p.Logger.Info("the helper has joined", "round", a.round.number, "attempt", a.number)
	case did.call == collect:
		p.helperAway(a.pair.exchange.heard, a.pair.exchange.unanswered(now))
		why := a.pair.over()
		if why == nil {
			return p, nil
		}
		p.Logger.Warn("the attempt has ended with the helper", "round", a.round.number, "attempt", a.number, "why", why)
		look := a.pair.shown || a.pair.gone != nil && a.pair.gone.Marked >= uint64(a.round.number)
		p.abandon()
		if look {
			// A Share of the round says that the helper has marked it, whether the stream has it or not.
			next := &looking{environment: p.environment, round: a.round, marked: uint64(a.round.number)}
			if a.pair.gone != nil {
				next.marked = max(next.marked, a.pair.gone.Marked)
			}
			return next, nil
		}
		return again(p.environment, a.round, a.number+1, now), nil
	}
	return p, nil
}

// takes reports whether another message may be opened.
func (p *pairing) takes() bool { return p.leader != nil && !p.closing && p.leader.Room() }

// silent reports whether users wait for a helper that has not replied for a quarter of the lease.
func (p *pairing) silent(now time.Time) bool {
	return p.leader.Unanswered() > 0 && now.Sub(p.exchange.heard) >= p.exchange.lease/4
}

// over returns why the attempt has died, or nil while it goes on.
func (p *pairing) over() error {
	switch {
	case p.leader == nil:
		return nil
	case p.shown:
		return fmt.Errorf("the helper has released the round")
	case p.gone != nil:
		return fmt.Errorf("the helper does not hold the attempt any more")
	}
	return p.leader.Over()
}

// erase drops shares, ids and verify key. It may be called again.
func (p *pairing) erase() {
	if p.leader != nil {
		p.leader.Erase()
	}
	p.workers, p.tokens = nil, nil
}

// A leadWorker opens and prepares reports on one goroutine, with the tokens of the bundle that it opened last.
type leadWorker struct {
	*split.Worker
	tokens []token
}

// opener returns the opener of a worker. Where reports have tokens it verifies them, and refuses users without a valid
// token; whether the others count is decided in the order in which the messages came.
func (w *leadWorker) opener(a *attempt, c seal.SharedContext) split.Opener {
	if a.tokens == nil {
		return splitwire.OpenerOf(a.opener.key, c, seal.Leader)
	}
	return splitwire.OpenerWith(a.opener.key, c, seal.Leader, a.opener.part.Grant, func(data []byte, users int) []bool {
		w.tokens = a.tokens.verify(w.tokens, data, users)
		admitted := make([]bool, users)
		for i, t := range w.tokens {
			admitted[i] = t.valid
		}
		return admitted
	})
}

// taken is one message on its way through the leader's workers.
type taken struct {
	of     place
	job    *split.Job // nil: refused
	ids    []shuffle.ReportID
	tokens []token // of its users, where reports have some and it opened
}

// lead opens messages as long as the attempt takes any, and returns how many were examined. What opened waits for the
// next request.
func (a *attempt) lead(reports []stream.Delivery) (n int) {
	p := a.pair
	var all []taken
	for n < len(reports) && p.takes() {
		all = append(all, a.take(&reports[n].Message))
		n++
	}
	jobs := make(chan *taken, len(all))
	for i := range all {
		if all[i].job != nil {
			jobs <- &all[i]
		}
	}
	close(jobs)
	var pool sync.WaitGroup
	var caught panics.First
	for _, w := range p.workers[:min(len(p.workers), max(1, len(jobs)))] {
		pool.Go(func() {
			for t := range jobs {
				w.tokens = w.tokens[:0]
				caught.Do(func() { t.job.Run(w.Worker) })
				t.tokens = slices.Clone(w.tokens)
			}
		})
	}
	pool.Wait()
	caught.Again()
	for i := range all {
		a.taken(&all[i])
	}
	return n
}

// take reads one message and hands it to the leader.
func (a *attempt) take(m *stream.Message) taken {
	o := sealed{message: m}
	mine, reason := a.opener.parse(&o)
	t := taken{of: o.of}
	if mine {
		a.cutoff = max(a.cutoff, m.Sequence)
	}
	if reason != Accepted {
		o.mine, o.reason = mine, reason
		a.note(&o)
		return t
	}
	r := &o.report
	job, outcome := a.pair.leader.Take(splitwire.UsersOf(r), seal.Leader.Sealed(r), seal.Helper.Sealed(r))
	if job == nil {
		o.mine, o.reason = true, reasonOfShared(outcome)
		a.note(&o)
		return t
	}
	t.job = job
	for _, id := range r.Ids {
		t.ids = append(t.ids, shuffle.ReportID(id))
	}
	return t
}

// taken counts the outcome of a message after its job has run.
func (a *attempt) taken(t *taken) {
	if t.job == nil {
		return
	}
	counts := make([]bool, len(t.tokens))
	for i, of := range t.tokens {
		if counts[i] = a.takes(of); !counts[i] {
			t.job.Refuse(i)
		}
	}
	opened := false
	for i, o := range a.pair.leader.Add(t.job) {
		opened = opened || o == split.Accepted
		if i < len(counts) && counts[i] && o == split.Accepted { // it goes into a request
			a.pair.tokens[t.ids[i]] = t.tokens[i].hash
		}
		if o != split.Accepted {
			a.decided(o)
		}
	}
	reason := Accepted
	switch {
	case opened:
	case len(t.tokens) > 0:
		reason = Grant
	default:
		reason = Undecryptable
	}
	a.floods.saw(&sealed{of: t.of, mine: true, reason: reason})
}

// decided counts the outcome of one user.
func (a *attempt) decided(o split.Outcome) {
	reason := reasonOfShared(o)
	a.counts[reason]++
	if reason == Accepted {
		a.places.opened(a.table, 1)
	}
	a.backlog.users = a.users()
	observe.Tell(a.Observer.Report, reason)
}

// reasonOfShared returns the Reason that an outcome counts as. A report that two operators refuse
// counts under the reason that one operator would have had for it.
func reasonOfShared(o split.Outcome) Reason {
	switch o {
	case split.Accepted:
		return Accepted
	case split.Duplicate:
		return Duplicate
	case split.BadLength:
		return Length
	case split.BadShare:
		return Malformed
	case split.BadProof:
		return Range
	case split.Refused:
		return Grant
	}
	return Undecryptable
}

// sharedRejects returns the rejects of a batch of two operators: users by the outcome that the leader stored beside its
// share, so that every process with the folder writes the same.
func sharedRejects(r split.Rejects) []*wire.Reject {
	var counts [reasons]uint64
	for o, n := range r {
		counts[reasonOfShared(split.Outcome(o))] += n
	}
	return rejects(counts)
}

// prepare fixes the cutoff, erases the attempt's key, and lays the leader's floor into its share.
func (a *attempt) prepare() (*split.Ending, error) {
	e := split.Entropy{Secret: a.Identity.Secret(entropyLabel)}
	_, _ = crand.Read(e.Fresh[:]) // never fails
	a.opener.key.Erase()
	note := split.Note{Cutoff: a.cutoff, Manifest: a.manifest}
	slices.SortFunc(a.taking.counted, compareHashes)
	for _, h := range a.taking.counted {
		note.Spent = append(note.Spent, h)
	}
	p, err := a.pair.leader.Prepare(e, note)
	a.erase()
	if err != nil {
		return nil, fmt.Errorf("round %d, attempt %d: %w", a.round.number, a.number, err)
	}
	return split.NewEnding(p), nil
}
