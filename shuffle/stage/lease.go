package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/stream"
)

// A lease decides which stage process works. It is liveness only: two processes that both believe to hold it lose
// reports, but can neither release twice nor count twice.
//
// No two clocks are compared. The holder counts from before its own write was sent; a waiting process counts from when
// it first saw that write, so the waiting one is never early.
//
// Its record is a stream.Lease, which also says where the newest round is.
type lease struct {
	subject  string
	instance [stream.InstanceSize]byte
	ttl      time.Duration
	poll     time.Duration
	newest   stream.Round // that this process knows
	told     stream.Round // the newest, as the record says that was seen last: nobody signed it

	known    bool          // sequence belongs to the current record, as far as we know
	sequence uint64        // of the current record; goes back only where the broker lost it
	expects  uint64        // of the next write: sequence, or what a look found in its place
	ours     bool          // the current record is ours
	theirs   time.Duration // the lease time of the current record
	longest  time.Duration // the longest lease time of any record
	seen     time.Time     // when sequence was first seen
	until    time.Time     // held until
	asleep   time.Time     // held until, by the wall clock
	due      time.Time     // next look or renewal
	doubt    doubt         // whether the current record is still there

	ahead time.Duration // tests: by how much the wall clock went on while the monotonic one stopped
}

// A doubt begins when a look finds nothing, or a lower sequence than the one known. A replica may lag, which takes
// seconds; or the broker lost the record: its stream was removed, or put back from a copy. The zero value is none.
type doubt struct {
	since    time.Time // of the first such look with none between that found what is known
	sequence uint64    // what the last one found, 0: nothing
	seen     time.Time // when that was first found
}

func (d *doubt) found(now time.Time, sequence uint64) {
	if d.since.IsZero() {
		d.since, d.seen = now, now
	}
	if sequence != d.sequence {
		d.sequence, d.seen = sequence, now
	}
}

func newLease(subject string, instance [stream.InstanceSize]byte, ttl, poll time.Duration) *lease {
	return &lease{subject: subject, instance: instance, ttl: ttl, poll: poll, longest: ttl}
}

func (l *lease) record(ttl time.Duration) []byte {
	return stream.Lease{Instance: l.instance, TTL: ttl, Newest: cmp.Or(l.newest, l.told)}.Record()
}

// holds reports whether nobody else can hold the lease now.
func (l *lease) holds(now time.Time) bool { return now.Before(l.until) && !l.overslept(now) }

// overslept reports whether the lease has run out by the wall clock, which goes on while a machine is suspended; the
// monotonic clock, which all other times go by, may stop. Only a renewal shows whether somebody else has the lease.
func (l *lease) overslept(now time.Time) bool {
	return !l.until.IsZero() && !now.Round(0).Add(l.ahead).Before(l.asleep)
}

// taken reports whether another process has the lease, as far as we know.
func (l *lease) taken(now time.Time) bool {
	return l.known && l.sequence != 0 && !l.ours && now.Before(l.seen.Add(l.theirs))
}

// patience returns how long a claim may be without its batch: its claimer's lease expires twice in that time.
func (l *lease) patience() time.Duration { return 2 * l.longest }

// next returns whether to look at the lease or to write it now, or neither.
func (l *lease) next(now time.Time) (look, write bool) {
	switch {
	case now.Before(l.due) && !(l.ours && l.overslept(now)):
		return false, false
	case !l.known:
		return true, false
	case l.taken(now):
		return true, false
	}
	return false, true
}

// saw records the message that a look found, nil for nothing.
func (l *lease) saw(now time.Time, m *stream.Message) {
	l.due = now.Add(l.poll)
	if m == nil {
		m = &stream.Message{}
	}
	if m.Sequence >= l.sequence {
		l.doubt = doubt{}
	} else if !l.lost(now, m) {
		return
	}
	if m.Sequence > l.sequence {
		l.seen = now
	}
	l.known, l.sequence, l.expects = true, m.Sequence, m.Sequence
	if m.Sequence == 0 {
		l.ours, l.until, l.due = false, time.Time{}, now
		return
	}
	l.ours, l.theirs = false, l.ttl // garbage is respected for as long as one of ours
	if standing, err := stream.ParseLease(m.Data); err == nil {
		l.ours = standing.Instance == l.instance
		l.theirs, l.told = min(standing.TTL, MaxLeaseTTL), standing.Newest
	}
	l.longest = max(l.longest, l.theirs)
	if !l.ours {
		l.until = time.Time{}
		if end := l.seen.Add(l.theirs); end.Before(l.due) {
			l.due = end
		}
	} else {
		l.due = now
	}
}

func (l *lease) isOurs(m *stream.Message) bool {
	standing, err := stream.ParseLease(m.Data)
	return err == nil && standing.Instance == l.instance
}

// lost reports whether the record that we know is gone from the broker, given that a look found m below it (sequence
// 0: nothing). That is believed after the time for which the record holds the lease: no replica lags as long, and its
// writer cannot renew it any more, so that nobody's lease is cut short. The holder, whose lease nobody else may take
// before it ends, tries at once to write over the record it found: if only a replica lags, the broker refuses that.
//
// This serves liveness only. A process that has just started knows of no record that was lost, and takes the lease at
// once, so that two may hold it until the lease of the first ends. They lose reports to each other, but each Open,
// claim and batch is written once.
func (l *lease) lost(now time.Time, m *stream.Message) bool {
	l.doubt.found(now, m.Sequence)
	if l.holds(now) {
		if m.Sequence == 0 || l.isOurs(m) {
			l.known, l.expects, l.due = true, m.Sequence, now
		}
		return false
	}
	if now.Sub(l.doubt.since) < max(l.ttl, l.theirs) {
		return false
	}
	l.seen, l.doubt = l.doubt.seen, doubt{}
	l.sequence = m.Sequence
	return true
}

// wrote records that the write sent at sent succeeded.
func (l *lease) wrote(sent time.Time, sequence uint64) {
	l.known, l.ours, l.seen = true, true, sent
	l.sequence, l.expects, l.doubt = sequence, sequence, doubt{}
	l.theirs = l.ttl
	l.until, l.asleep, l.due = sent.Add(l.ttl), sent.Round(0).Add(l.ahead).Add(l.ttl), sent.Add(l.ttl/4)
}

// failed records that a call failed. After a conflict or a lost answer only a look shows the current record.
func (l *lease) failed(now time.Time) {
	l.known = false
	l.due = now.Add(min(l.poll, l.ttl/16))
}

// A leaseKeeper keeps the lease of a stage process on the broker.
type leaseKeeper struct {
	*environment
	troubles *troubles
	held     bool // the last value passed to Observer.Lease
	waits    bool // that the lease is another's was logged
}

// keep looks at the lease or renews it, where that is due: at most one look and one write.
func (k *leaseKeeper) keep(ctx context.Context) {
	for range 2 {
		now := time.Now()
		look, write := k.lease.next(now)
		var err error
		what := aLook
		switch {
		case look:
			err = k.look(ctx)
		case write:
			what = aWrite
			err = k.write(ctx, k.LeaseTTL)
		default:
			return
		}
		switch {
		case err == nil:
			k.troubles.worked(what)
			continue
		case errors.Is(err, stream.ErrConflict): // answered: it is somebody else's, or was lost
			k.troubles.worked(what)
			k.Logger.Debug("the lease is not as it was known", "error", err)
		case ctx.Err() == nil:
			k.troubles.failed(ctx, what, err)
		}
		k.lease.failed(time.Now())
		observe.Tell(k.Observer.Failed, "lease")
		return
	}
}

func (k *leaseKeeper) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.LeaseTTL/4)
	defer cancel()
	m, err := found(k.Records.Get(ctx, k.lease.subject))
	if err != nil {
		return err
	}
	now := time.Now()
	k.lease.saw(now, m)
	if k.lease.taken(now) {
		k.troubles.worked(aWrite) // another's did
	}
	if k.lease.taken(now) && !k.waits {
		k.waits = true
		k.Logger.Info("standing by: another process works, or died less than its lease ago", "lease", k.lease.theirs)
	}
	return nil
}

func (k *leaseKeeper) write(ctx context.Context, ttl time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, k.LeaseTTL/4)
	defer cancel()
	sent := time.Now()
	sequence, err := k.Records.Swap(ctx, k.lease.subject, k.lease.expects, k.lease.record(ttl))
	if err != nil {
		return err
	}
	k.lease.wrote(sent, sequence)
	return nil
}

// confirm renews the lease. Where it succeeds nobody else has had it since we wrote it last, whatever this machine's
// clocks say.
func (k *leaseKeeper) confirm(ctx context.Context) error {
	if err := k.write(ctx, k.LeaseTTL); err != nil {
		k.lease.failed(time.Now())
		observe.Tell(k.Observer.Failed, "lease")
		return fmt.Errorf("renew the lease: %w", err)
	}
	return nil
}

// giveUp lets the next process begin at once instead of after the lease's time.
func (k *leaseKeeper) giveUp(ctx context.Context) {
	if k.lease.known && k.lease.ours && k.lease.holds(time.Now()) {
		if err := k.write(context.WithoutCancel(ctx), 0); err != nil {
			k.Logger.Debug("could not give the lease up; it expires", "error", err)
		}
	}
	k.lease.until = time.Time{}
	k.places.holds(time.Time{}, time.Time{})
	k.tell(false)
}

func (k *leaseKeeper) tell(held bool) {
	if held != k.held {
		k.held, k.waits = held, false
		k.Logger.Info("lease", "held", held)
		observe.Tell(k.Observer.Lease, held)
	}
}
