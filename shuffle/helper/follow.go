package helper

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// A follower reads and puts the records, on Run's goroutine.
type follower struct {
	*Helper
	broker  broker
	round   *round // the newest, nil before one was found
	seen    place  // the newest attempt that was joined or passed over
	pending *attempt
	begun   bool // the records from before this process were read
}

// A round is one round as the learner announced it, checked against the task.
type round struct {
	number   stream.Round
	manifest stream.Hash
	mixer    shuffle.Config
}

// A place names an attempt by its numbers alone.
type place struct{ round, attempt uint64 }

func (p place) before(q place) bool {
	return p.round < q.round || p.round == q.round && p.attempt < q.attempt
}

// errLater means that something is done at the next look.
var errLater = errors.New("later")

// follow looks again and again until the task is over.
func (f *follower) follow(ctx context.Context) error {
	for {
		over, err := f.turn(ctx)
		f.mu.Lock()
		f.commit()
		stopped, closing := f.stopped, f.closing != nil
		f.mu.Unlock()
		switch {
		case stopped != nil:
			return stopped
		case over && err == nil && !closing:
			return nil
		case err != nil && !errors.Is(err, errLater):
			f.broker.failures++
		default:
			f.broker.failures = 0
		}
		if err := f.broker.rest(ctx); err != nil {
			return err
		}
	}
}

// turn puts what has to be put, looks at the newest round and its newest attempt, and reports whether the task is over.
// After a wake that brought something it looks at that alone: another turn follows within the interval.
func (f *follower) turn(ctx context.Context) (over bool, err error) {
	f.caught.Again()
	woken := len(f.broker.brought) > 0
	for _, step := range []func(context.Context) error{f.putShare, f.lookAtShown, f.putJoin, f.lookAtRound, f.begin,
		f.lookAtOpen} {
		if err := step(ctx); err != nil {
			return false, err
		}
	}
	if woken {
		return false, nil
	}
	return f.ended(ctx)
}

// putShare puts the mark's Share.
func (f *follower) putShare(ctx context.Context) error {
	f.mu.Lock()
	data, r := f.share, stream.Round(f.mark.X.Round)
	f.mu.Unlock()
	if data == nil {
		return nil
	}
	result, err := f.broker.put(ctx, f.Task.Share(r), data)
	if err != nil {
		return err
	}
	f.mu.Lock()
	if bytes.Equal(f.share, data) {
		f.share = nil
	}
	f.mu.Unlock()
	if !result.Ours {
		return f.shownBy(result.Standing)
	}
	return nil
}

// lookAtShown reads the Share of a round above the mark that, as the leader claims, it has stored.
func (f *follower) lookAtShown(ctx context.Context) error {
	f.mu.Lock()
	r, mark := f.shown, stream.Round(f.mark.X.Round)
	f.mu.Unlock()
	if r == 0 || r <= mark {
		return nil
	}
	_, err := f.lookAtShare(ctx, r)
	return err
}

// lookAtShare looks at the Share of a round, and reports whether there is one.
func (f *follower) lookAtShare(ctx context.Context, r stream.Round) (stands bool, err error) {
	m, err := f.broker.get(ctx, f.Task.Share(r))
	if err != nil || m == nil {
		return false, err
	}
	return true, f.shownBy(*m)
}

// shownBy looks at a record that should be a Share. A record without the helper's own signature is ignored.
func (f *follower) shownBy(m stream.Message) error {
	s, err := splitwire.VerifyShare(m.Data, f.Identity.Public())
	if err != nil {
		f.Logger.Warn("the broker shows something that is not the helper's Share", "subject", m.Subject)
		return nil
	}
	return f.shows(s)
}

// lookAtRound finds the newest round. An older one than is known is passed over: it was put again.
func (f *follower) lookAtRound(ctx context.Context) error {
	if m := f.broker.taken("round"); m != nil && f.newer(*m) {
		if r, err := f.roundOf(*m); err == nil {
			f.begins(r)
			return nil
		}
	}
	open := f.broker.brought["open"]
	if a, err := stream.ParseSubject(open.Subject); err == nil && f.round != nil && a.Round == f.round.number {
		return nil // of the round that is known: nothing newer is looked for before it is joined
	}
	m, err := f.broker.latest(ctx, f.Task.Rounds())
	if err != nil || m == nil {
		return err
	}
	if !f.newer(*m) {
		return nil
	}
	r, err := f.roundOf(*m)
	f.outcome(ctx, "round", err)
	if err == nil {
		f.begins(r)
	}
	return err
}

// newer reports whether a record on a Round's subject is of a round after the newest that is known.
func (f *follower) newer(m stream.Message) bool {
	a, err := stream.ParseSubject(m.Subject)
	return err != nil || f.round == nil || a.Round > f.round.number
}

func (f *follower) begins(r round) {
	f.round = &r
	f.say(fmt.Sprintf("waiting for an attempt of round %d", r.number))
}

// roundOf verifies a Round, and that it follows the task.
func (f *follower) roundOf(m stream.Message) (round, error) {
	var r wire.Round
	body, err := seal.VerifyRecord(m, f.LearnerKey, f.hash, &r)
	if err != nil {
		return round{}, err
	}
	at, err := manifest.Follows(f.task, f.hash, &r)
	if err != nil {
		return round{}, fmt.Errorf("%s: %w", m.Subject, err)
	}
	cfg, err := at.Mixer()
	if err != nil {
		return round{}, fmt.Errorf("%s: %w", m.Subject, err)
	}
	return round{number: stream.Round(r.Round), manifest: stream.HashOf(body), mixer: cfg}, nil
}

// back is the number of rounds before the newest for which a process reads Shares when it begins.
const back = 8

// begin reads once the records from before this process. Shares above the mark stop the helper. The mark's own Share is
// put again if its round is young enough to have records.
func (f *follower) begin(ctx context.Context) error {
	if f.begun || f.round == nil {
		return nil
	}
	f.mu.Lock()
	mark := f.mark
	f.mu.Unlock()
	newest, marked := f.round.number, stream.Round(mark.X.Round)
	for r := max(marked, newest-min(newest, back)) + 1; r <= newest; r++ {
		if _, err := f.lookAtShare(ctx, r); err != nil {
			return err
		}
	}
	f.begun = true
	if marked > 0 && marked+stream.KeptRounds > newest {
		f.mu.Lock()
		f.share = mark.Signed
		f.mu.Unlock()
		return f.putShare(ctx)
	}
	return nil
}

// lookAtOpen finds the newest attempt of the newest round, and joins it.
func (f *follower) lookAtOpen(ctx context.Context) error {
	brought := f.broker.taken("open")
	if f.round == nil {
		return nil
	}
	if m := brought; m != nil {
		if open, x, err := f.openOf(*m); err == nil && f.seen.before(place{x.Round, x.Number}) {
			return f.join(ctx, open, x)
		}
	}
	m, err := f.broker.latest(ctx, f.Task.Opens(f.round.number))
	if err != nil || m == nil {
		return err
	}
	if a, err := stream.ParseSubject(m.Subject); err != nil || !f.seen.before(place{uint64(a.Round), uint64(a.Attempt)}) {
		return nil
	}
	open, x, err := f.openOf(*m)
	f.outcome(ctx, "open", err)
	if err != nil {
		return err
	}
	return f.join(ctx, open, x)
}

// openOf verifies an Open of the newest round, as a device does.
func (f *follower) openOf(m stream.Message) (*wire.Open, split.Attempt, error) {
	var o wire.Open
	if _, err := seal.VerifyRecord(m, f.LeaderKey, f.hash, &o); err != nil {
		return nil, split.Attempt{}, err
	}
	switch {
	case stream.Hash(o.ManifestHash) != f.round.manifest:
		return nil, split.Attempt{}, fmt.Errorf("%s opens manifest %x, round %d has %x", m.Subject, o.ManifestHash,
			f.round.number, f.round.manifest)
	case o.Suite != f.task.Suite:
		return nil, split.Attempt{}, fmt.Errorf("%s has suite %v, the task %v", m.Subject, o.Suite, f.task.Suite)
	}
	return &o, split.Attempt{Task: f.hash, Round: o.Round, Number: o.Attempt, Open: stream.HashOf(m.Data)}, nil
}

// ended reports whether the task is over, and nothing is left to put.
func (f *follower) ended(ctx context.Context) (bool, error) {
	m, err := f.broker.get(ctx, f.Task.End())
	if err != nil || m == nil {
		return false, err
	}
	var end wire.End
	_, err = seal.VerifyRecord(*m, f.LearnerKey, f.hash, &end)
	f.outcome(ctx, "end", err)
	if err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.share == nil && f.closing == nil, nil
}
