package stage

import (
	"cmp"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// An attempt is the only holder of a round's secrets: the key, the running totals, the ids that were counted. It
// ends in close or erase, after which it holds none.
type attempt struct {
	*environment
	round
	number stream.Attempt
	mixer  *shuffle.Mixer // nil under trust split
	pair   *pairing       // nil but under trust split
	opener *opener
	term   term
	table  *placeTable // nil: it opens without places
	opened uint64      // stream sequence of its Open; 0: not put yet

	cutoff uint64          // highest sequence examined in this attempt
	counts [reasons]uint64 // messages by outcome, and users whose token does not count
	taking taking
	single sealed // scratch of examine
}

// newAttempt lays the front floor, which comes before the key is published, and draws the key.
func newAttempt(e *environment, r round, number stream.Attempt, now time.Time) (*attempt, error) {
	key, err := seal.NewRoundKey(e.task.Suite)
	if err != nil {
		return nil, fmt.Errorf("round %d: %w", r.number, err)
	}
	part := manifest.PartOf(e.task, r.mixer.Params)
	a := &attempt{
		environment: e, round: r, number: number,
		opener: &opener{
			task: e.Task, taskHash: e.taskHash, attempt: place{r.number, number}, subject: e.Task.Report(r.number, number),
			suite: e.task.Suite, key: key, tokens: e.tokens,
			context: seal.Context{
				ManifestHash: r.manifest, Attempt: uint64(number), StageKey: e.Identity.Public(), Public: key.Public(),
			},
			bundle: r.mixer.MaxBundle, part: part, largest: part.ReportSize(e.task.Suite, int(r.mixer.MaxBundle)),
		},
		term: term{cohort: r.mixer.Cohort, minimum: r.mixer.Minimum, deadline: r.deadline, started: now},
	}
	if e.operators() {
		a.pair = new(pairing)
		return a, nil
	}
	if a.mixer, err = shuffle.NewMixer(r.mixer); err != nil {
		key.Erase()
		return nil, fmt.Errorf("round %d: %w", r.number, err)
	}
	return a, nil
}

// users returns the number of users in the totals.
func (a *attempt) users() uint64 {
	switch {
	case a.pair == nil:
		return a.mixer.Users()
	case a.pair.leader == nil:
		return 0
	}
	return a.pair.leader.Users()
}

// open returns the signed Open.
func (a *attempt) open() ([]byte, error) {
	silos := a.task.Plan.Silos > 0
	full := silos && a.waiting <= a.round.mixer.Cohort // every silo has a place: none has to be kept away
	lease := a.takePlaces()
	ramp := a.backlog.open(float64(a.round.mixer.Cohort), float64(a.waiting), silos && !full, a.number > 1 &&
		!a.floors() && !full, a.deadline, a.term.started)
	if lease > 0 {
		ramp = stream.AskRamp(asked * float64(a.round.mixer.Cohort) / cmp.Or(a.places.waited(), float64(a.waiting)))
		a.backlog.ramp = ramp
	}
	a.backlog.of = a.opener.attempt
	return a.Identity.Sign(&wire.Open{
		Version: stream.Version, TaskHash: a.taskHash[:], Round: uint64(a.round.number), Attempt: uint64(a.number),
		ManifestHash: a.manifest[:], Suite: a.task.Suite, PublicKey: a.opener.key.Public(), Instance: a.Instance[:],
		StartedUnixMs: a.term.started.UnixMilli(), JoinProbability: ramp.Probability,
		JoinDoublingMs: uint32(ramp.Doubling.Milliseconds()), PlacesMs: uint32(lease.Milliseconds()),
	})
}

// asked is the number of users invited at first for each place: a request costs nothing.
const asked = 2

// takePlaces makes the places of the attempt, and returns for how long they are kept; 0: it has none.
func (a *attempt) takePlaces() time.Duration {
	lease := a.places.lease(a.deadline, a.number)
	if lease == 0 || !a.task.Plan.Places {
		return 0
	}
	m := a.round.mixer
	a.table = &placeTable{cohort: m.Cohort, minimum: m.Minimum, bundle: m.MaxBundle, lease: lease, started: a.term.started,
		deadline: a.term.deadlineAt()}
	if a.pair == nil {
		a.begin(a.term.started)
	}
	return lease
}

// begin lets the time of the attempt run, and gives its places: once it is open, or under trust split once the helper
// has joined it.
func (a *attempt) begin(now time.Time) {
	a.term.started = now
	a.backlog.opened = now
	if a.table == nil {
		return
	}
	a.table.started, a.table.deadline = now, a.term.deadlineAt()
	if a.number > 1 && !a.floors() {
		a.table.reserved = now.Add(a.table.lease)
	}
	a.places.begin(a.opener.attempt, a.table)
}

// room returns the number of users that may still come, at least 1.
func (a *attempt) room() uint64 {
	users := a.users()
	if a.pair != nil && a.pair.leader != nil {
		users += a.pair.leader.Unanswered()
	}
	return max(a.round.mixer.Cohort, users+1) - users
}

// ripe reports whether the attempt can be closed: at the planned cohort, or past the deadline with the minimum. Past
// the deadline it goes on while reports come, at most for the length of the deadline once more: their users have been
// charged. A round that reaches its minimum late, or whose stage was asleep at its deadline, still has that time.
//
// Under trust split it takes no more reports once it is ripe, and is closed when the helper has decided all of them.
func (a *attempt) ripe(now time.Time) bool {
	if a.pair == nil {
		return a.term.full(now, a.users(), a.lives)
	}
	a.pair.closing = a.pair.leader != nil && a.term.full(now, a.users(), a.lives)
	return a.pair.closing && a.pair.leader.CanPrepare()
}

// lives returns until when a place may bring a report, the zero time where none does.
func (a *attempt) lives(now time.Time) time.Time { return a.places.lives(a.table, now) }

// A release holds the messages that leave the stage, in the order in which they are put, and the figures for metrics.
type release struct {
	claim, batch []byte
	lists        [][]byte // of tokens, put between claim and batch; none in a task without tokens
	counted      counted  // the tokens of the lists
	round        round
	attempt      stream.Attempt
	users        uint64
	started      time.Time                 // zero: in another process
	opened       uint64                    // stream sequence of the attempt's Open; 0: not known
	instance     [stream.InstanceSize]byte // in whose name the round is marked
}

// close fixes the cutoff, tops up, lays the back floor, erases key and totals, and signs the release.
func (a *attempt) close() (*release, error) {
	cutoff, hashes := a.cutoff, a.taking.counted
	r, err := a.mixer.Close()
	a.erase()
	if err != nil {
		return nil, fmt.Errorf("round %d, attempt %d: %w", a.round.number, a.number, err)
	}
	out := &release{round: a.round, attempt: a.number, users: r.Users, started: a.term.started, opened: a.opened,
		instance: a.Instance}
	out.claim, err = a.Identity.Sign(&wire.Claim{
		Version: stream.Version, TaskHash: a.taskHash[:], Round: uint64(a.round.number), Attempt: uint64(a.number),
		ManifestHash: a.manifest[:], Instance: a.Instance[:],
	})
	if err != nil {
		return nil, err
	}
	spent, err := a.spend(out, hashes)
	if err != nil {
		return nil, err
	}
	out.batch, err = a.Identity.Sign(&wire.Batch{
		Version: stream.Version, TaskHash: a.taskHash[:], Round: uint64(a.round.number), Attempt: uint64(a.number),
		ManifestHash: a.manifest[:], Users: r.Users, NoiseTrials: r.NoiseTrials, Totals: r.Totals,
		Cutoff: cutoff, Rejects: rejects(a.counts), SpentHash: spent,
	})
	clear(r.Totals)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// erase overwrites and drops the bytes of a batch that lost.
func (r *release) erase() {
	clear(r.batch)
	r.batch = nil
}

// erase drops key, totals and ids. It may be called again.
func (a *attempt) erase() {
	a.opener.key.Erase()
	if a.pair != nil {
		a.pair.erase()
	} else {
		a.mixer.Erase()
	}
	a.taking.erase()
	a.places.end(a.table, a.backlog.ramp)
	clear(a.single.plaintext) // it is still there where opening it panicked
	a.single = sealed{}
}
