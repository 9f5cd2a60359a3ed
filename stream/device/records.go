package device

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// maxTold bounds the ignored messages that a forger can make a device remember and log.
const maxTold = 1 << 10

// records reads what learner and stage put, and lets through only what they signed for this task. Everything else is
// treated as not there and logged once: a device cannot tell a forger from a broken peer, and neither decides anything.
type records struct {
	port      stream.Reader
	agreement *consent.Agreement // nil until there is one: then the Task alone is read
	task      stream.Task
	timeout   time.Duration
	log       *slog.Logger

	none    bool            // the last look over all rounds showed none
	there   time.Time       // when the newest known round was last on the broker, by a clock that runs while the machine sleeps
	told    map[string]bool // what was logged already
	failing bool            // the last read failed
}

// get reads a message, or the newest one of a pattern. It returns false where there is none that can be read now.
func (r *records) get(ctx context.Context, subject string, latest bool) (stream.Message, bool) {
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	read := r.port.Get
	if latest {
		read = r.port.Latest
	}
	m, err := read(limited, subject)
	switch {
	case err == nil || errors.Is(err, stream.ErrNotFound):
		if r.failing {
			r.failing = false
			r.log.Info("records of the task can be read again")
		}
		return m, err == nil
	case !r.failing && ctx.Err() == nil && !errors.Is(err, stream.ErrDisconnected):
		// at the end of a run nobody waits for the answer
		r.failing = true
		r.log.Warn("cannot read a record of the task; trying again", "subject", subject, "err", err)
	}
	return stream.Message{}, false
}

// ignore logs, once a subject, why a message is treated as not there.
func (r *records) ignore(subject string, err error) {
	if !r.told[subject] && len(r.told) < maxTold {
		r.told[subject] = true
		r.log.Warn("ignored a message that does not belong to this task", "subject", subject, "err", err)
	}
}

// readTask reads the Task under the learner key that it names itself; whether that key is the right one is the policy's
// question.
func (r *records) readTask(ctx context.Context) (*wire.Task, stream.Hash, bool) {
	subject := r.task.Task()
	got, ok := r.get(ctx, subject, false)
	if !ok {
		return nil, stream.Hash{}, false
	}
	t, hash, err := consent.ReadTask(r.task, got)
	if err != nil {
		r.ignore(subject, err)
		return nil, stream.Hash{}, false
	}
	return t, hash, true
}

// newestRound finds the newest round after one that is known, 0: none. The next numbers are read, in steps that
// double. Where none is known, or the known one is gone, so that the numbers after it may be too, the stage's lease
// says where to begin: a hint, for it is not signed. Where that leads nowhere the broker looks through all rounds,
// at a cost that grows with their number, and shows the round that was put last. If that round was put again, the round
// before it is read.
func (r *records) newestRound(ctx context.Context, known stream.Round, now time.Time) (m *wire.Round, hash stream.Hash,
	ok bool) {
	if known > 0 {
		m, hash, ok = r.after(ctx, known)
		kept, away := manifest.Retention(r.agreement.Task.Plan), now.Sub(r.there)
		if ok || kept == 0 || 0 <= away && away < kept {
			return m, hash, ok
		}
		if !r.removed(ctx, known) {
			r.there = now
			return nil, stream.Hash{}, false
		}
	}
	answered := r.none
	if !r.none {
		var hint stream.Round
		if hint, answered = r.hint(ctx); hint > known {
			m, hash, ok = r.readRound(ctx, hint)
		}
	}
	if !ok {
		var got stream.Message
		if got, ok = r.get(ctx, r.task.Rounds(), true); ok {
			m, hash, ok = r.round(got)
		}
		if ok && again(stream.Round(m.Round), got.Sequence) {
			answered, ok = false, false // there are rounds
			for before := got.Sequence - 2; !ok && before > max(m.Round, got.Sequence-2-putAgain); before-- {
				if found, h, there := r.readRound(ctx, stream.Round(before)); there {
					m, hash, ok = found, h, true
				}
			}
		}
	}
	if r.none = !ok && answered; !ok {
		return nil, stream.Hash{}, false
	}
	if later, h, found := r.after(ctx, stream.Round(m.Round)); found {
		m, hash = later, h
	}
	return m, hash, true
}

// after finds the newest round after a known one by literal reads: twice as many as the number of rounds between has
// binary digits.
func (r *records) after(ctx context.Context, known stream.Round) (m *wire.Round, hash stream.Hash, ok bool) {
	step, grows := stream.Round(1), true
	for step > 0 {
		next, h, found := r.readRound(ctx, known+step)
		if found {
			m, hash, ok = next, h, true
			known += step
		}
		if grows = grows && found; grows {
			step *= 2
		} else {
			step /= 2
		}
	}
	return m, hash, ok
}

func (r *records) readRound(ctx context.Context, number stream.Round) (*wire.Round, stream.Hash, bool) {
	got, ok := r.get(ctx, r.task.Round(number), false)
	if !ok {
		return nil, stream.Hash{}, false
	}
	return r.round(got)
}

// hint returns the newest round that the holder of the stage's lease knows, 0 for none, and whether the broker
// answered. The number is as trustworthy as its writer.
func (r *records) hint(ctx context.Context) (stream.Round, bool) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	m, err := r.port.Get(ctx, r.task.Lease())
	if err != nil {
		return 0, errors.Is(err, stream.ErrNotFound)
	}
	lease, _ := stream.ParseLease(m.Data)
	return lease.Newest, true
}

// removed reports whether the broker answered that it has no such Round, or one that was put again.
func (r *records) removed(ctx context.Context, round stream.Round) bool {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	m, err := r.port.Get(ctx, r.task.Round(round))
	return errors.Is(err, stream.ErrNotFound) || err == nil && again(round, m.Sequence)
}

// putAgain bounds the number of old rounds that may be put again one after the other.
const putAgain = 8

// again reports whether a Round was put again after it had been removed, by its sequence in the stream: Round r is
// first put at r+1, behind the Task, or a little later where records were lost.
func again(r stream.Round, sequence uint64) bool {
	return sequence > uint64(r)+1+uint64(stream.KeptRounds)/2
}

// round verifies a message that holds a Round.
func (r *records) round(got stream.Message) (*wire.Round, stream.Hash, bool) {
	m, hash, err := r.agreement.ReadRound(got)
	return m, hash, r.passes(got, err)
}

// passes reports whether a record was verified, and logs why not.
func (r *records) passes(got stream.Message, err error) bool {
	if err != nil {
		r.ignore(got.Subject, err)
	}
	return err == nil
}

// end verifies a message that holds the End.
func (r *records) end(got stream.Message) (*wire.End, bool) {
	e, err := r.agreement.ReadEnd(got)
	return e, r.passes(got, err)
}

// latestOpen reads the newest attempt at a round.
func (r *records) latestOpen(ctx context.Context, round stream.Round, manifest stream.Hash) (*wire.Open,
	participation.Attempt, bool) {
	got, ok := r.get(ctx, r.task.Opens(round), true)
	if !ok {
		return nil, participation.Attempt{}, false
	}
	return r.open(got, manifest)
}

// open verifies a message that holds an attempt at a round, with a key that reports can be sealed to.
func (r *records) open(got stream.Message, manifest stream.Hash) (*wire.Open, participation.Attempt, bool) {
	o, hash, err := r.agreement.ReadOpen(got, manifest)
	if !r.passes(got, err) {
		return nil, participation.Attempt{}, false
	}
	return o, participation.Attempt{Number: stream.Attempt(o.Attempt), Open: hash}, true
}

// join verifies a message that holds the helper's part of an attempt.
func (r *records) join(got stream.Message, manifest stream.Hash) (*wire.Join, stream.Hash, bool) {
	j, hash, err := r.agreement.ReadJoin(got, manifest)
	return j, hash, r.passes(got, err)
}

// readJoin reads the Join of the newest attempt at a round. One of another Open is not there.
func (r *records) readJoin(ctx context.Context, one *round) (*wire.Join, stream.Hash, bool) {
	got, ok := r.get(ctx, r.task.Join(one.number, one.attempt.Number), false)
	if !ok {
		return nil, stream.Hash{}, false
	}
	j, hash, ok := r.join(got, one.manifest)
	return j, hash, ok && r.passes(got, consent.CheckPair(one.open, one.attempt.Open, j))
}

// claimed reports whether a message is the Claim of the round with this manifest.
func (r *records) claimed(got stream.Message, manifest stream.Hash) bool {
	return r.passes(got, r.agreement.ReadClaim(got, manifest))
}

// readClose reads the Close of an attempt.
func (r *records) readClose(ctx context.Context, round stream.Round, attempt stream.Attempt,
	manifest stream.Hash) (*wire.Close, bool) {
	got, ok := r.get(ctx, r.task.Close(round, attempt), false)
	if !ok {
		return nil, false
	}
	return r.close(got, manifest)
}

// close verifies a message that holds the Close of an attempt.
func (r *records) close(got stream.Message, manifest stream.Hash) (*wire.Close, bool) {
	c, err := r.agreement.ReadClose(got, manifest)
	return c, r.passes(got, err)
}

// closed returns the decision of a Close, together with the Open of its attempt: the broker may have lost the Open
// that a device sent to, and then the attempt that closed is another. It returns false while the Open cannot be read:
// a Close without its Open counts nobody.
func (r *records) closed(ctx context.Context, c *wire.Close) (participation.Closed, bool) {
	out := participation.Closed{Round: stream.Round(c.Round),
		Attempt:  participation.Attempt{Number: stream.Attempt(c.Attempt)},
		Manifest: stream.Hash(c.ManifestHash), Cutoff: c.Cutoff, Void: c.Void}
	if c.Void { // no attempt matters then
		return out, true
	}
	if r.agreement.HasOperators() { // it names its attempt whole
		out.Attempt.Open, out.Attempt.Join = stream.Hash(c.OpenHash), stream.Hash(c.JoinHash)
		return out, true
	}
	got, ok := r.get(ctx, r.task.Open(out.Round, out.Attempt.Number), false)
	if !ok {
		return out, false
	}
	hash, err := r.agreement.ReadBeside(got)
	out.Attempt.Open = hash
	return out, r.passes(got, err)
}

// watch subscribes to wakes. Without them only the loop's timer makes it read.
func (r *records) watch(ctx context.Context) <-chan stream.Wake {
	wake, err := r.port.Watch(ctx, r.task)
	if err != nil {
		r.log.Warn("watch task; trying again", "err", err)
		return nil
	}
	return wake
}
