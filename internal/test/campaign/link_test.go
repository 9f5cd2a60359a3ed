package campaign

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/panlearn/panlearn/stream"
)

var (
	errGone    = errors.New("the process is gone")
	errCut     = errors.New("cut off from the broker")
	errTimeout = errors.New("no answer in time")
)

const (
	lateAnswer = 2 * time.Second  // how long a caller waits for a write that is under way
	lateWrite  = 40 * time.Second // how much later it happens at most
)

// A trap ends, or cuts off, a life at its next call of a kind, done or not.
type trap struct {
	call  string        // verb of the subject that is put, or lease, fetch, ack, purge, publish
	after bool          // the call is done, and its answer lost
	cut   time.Duration // 0: the process dies
}

func (t trap) String() string {
	when, what := "before", "dies"
	if t.after {
		when = "after"
	}
	if t.cut > 0 {
		what = "is cut off"
	}
	return what + " " + when + " " + t.call
}

// A link is the connection of one life of one process. Its faults are those between this process and the broker; what
// the broker does by itself is memory.Injector's.
type link struct {
	w       *world
	owner   *process
	records stream.Records
	writer  stream.Transport
	reader  stream.ReportReader // of stages
	ctx     context.Context     // of the life
	die     context.CancelFunc
	onKill  func() // closes the life's disk

	mu       sync.Mutex
	rng      *rand.Rand
	dead     bool
	cutUntil time.Time
	asleep   time.Time // the process is suspended until then
	slow     bool      // a third of the calls: writes reach the broker after their callers gave up, answers are stale
	trap     *trap
}

// kill ends the life: nothing that it does from now on happens.
func (l *link) kill() {
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	l.onKill()
	l.die()
}

func (l *link) enter() error {
	l.slept()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.dead:
		return errGone
	case time.Now().Before(l.cutUntil):
		return errCut
	}
	return nil
}

// late draws how much later something happens, mostly not at all.
func (l *link) late(most time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.slow || l.rng.IntN(3) > 0 {
		return 0
	}
	return time.Millisecond + time.Duration(l.rng.Int64N(int64(most)))
}

// write performs a write, late if the link is slow. Where it returns an error the caller knows nothing.
func (l *link) write(ctx context.Context, do func(context.Context) error) error {
	if err := l.enter(); err != nil {
		return err
	}
	late := l.late(lateWrite)
	if late == 0 {
		return do(ctx)
	}
	l.w.late.Go(func() {
		time.Sleep(late)
		_ = do(context.WithoutCancel(ctx)) // nobody waits for the answer
	})
	timer := time.NewTimer(lateAnswer)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return errTimeout
	}
}

// spring returns whether the call is the one that a trap waits for, and springs it before or after.
func (l *link) spring(call string, after bool) bool {
	l.mu.Lock()
	t := l.trap
	if t == nil || t.call != call || t.after != after {
		l.mu.Unlock()
		return false
	}
	l.trap = nil
	l.cutUntil = time.Now().Add(t.cut)
	l.mu.Unlock()
	l.w.sprang(*t)
	l.w.troubled(t.String(), l.owner, t.cut)
	if t.cut == 0 {
		l.kill()
	}
	return true
}

// trapped performs a call in which a trap may lie.
func (l *link) trapped(call string, do func() error) error {
	if l.spring(call, false) {
		return errGone
	}
	err := do()
	l.slept()
	if l.spring(call, true) {
		return errGone
	}
	return err
}

// PutOnce implements stream.Records.
func (l *link) PutOnce(ctx context.Context, subject string, data []byte) (r stream.PutResult, err error) {
	at, err := stream.ParseSubject(subject)
	must(err)
	data = bytes.Clone(data) // what is under way is out of the caller's hands, who may erase it
	answer := make(chan stream.PutResult, 1)
	err = l.trapped(at.Verb, func() error {
		if err := l.enter(); err != nil {
			return err
		}
		l.w.before(l.owner, subject, data)
		return l.write(ctx, func(ctx context.Context) error {
			r, err := l.records.PutOnce(ctx, subject, data)
			if err == nil {
				l.w.saw(r.Standing)
			}
			answer <- r
			return err
		})
	})
	if err != nil {
		return r, err
	}
	return <-answer, nil
}

// Get implements stream.Records.
func (l *link) Get(ctx context.Context, subject string) (stream.Message, error) {
	return l.read(ctx, subject, l.records.Get)
}

// Latest implements stream.Records.
func (l *link) Latest(ctx context.Context, pattern string) (stream.Message, error) {
	return l.read(ctx, pattern, l.records.Latest)
}

func (l *link) read(ctx context.Context, of string, by func(context.Context, string) (stream.Message,
	error)) (stream.Message, error) {
	if err := l.enter(); err != nil {
		return stream.Message{}, err
	}
	m, err := by(ctx, of)
	l.slept()
	time.Sleep(l.late(lateAnswer)) // the state of then, returned now
	if err == nil {
		l.w.saw(m)
	}
	return m, err
}

// Swap implements stream.Records.
func (l *link) Swap(ctx context.Context, subject string, expected uint64, data []byte) (uint64, error) {
	answer := make(chan uint64, 1)
	err := l.trapped("lease", func() error {
		return l.write(ctx, func(ctx context.Context) error {
			n, err := l.records.Swap(ctx, subject, expected, data)
			answer <- n
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	return <-answer, nil
}

// Watch implements stream.Records.
func (l *link) Watch(ctx context.Context, task stream.Task) (<-chan stream.Wake, error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	return l.records.Watch(ctx, task)
}

// Publish implements stream.ReportWriter.
func (l *link) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	answer := make(chan []stream.Ack, 1)
	err := l.trapped("publish", func() error {
		return l.write(ctx, func(ctx context.Context) error {
			if l.w.full() {
				acks := make([]stream.Ack, len(reports))
				for i := range acks {
					acks[i].Status = stream.Refused
				}
				answer <- acks
				return nil
			}
			acks, err := l.writer.Publish(ctx, reports)
			answer <- acks
			return err
		})
	})
	acks := make([]stream.Ack, len(reports))
	if err == nil {
		acks = <-answer
	}
	if l.enter() == errGone { // it died while the answer was on its way
		return make([]stream.Ack, len(reports)), errGone
	}
	return acks, err
}

// Fetch implements stream.ReportReader.
func (l *link) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	if err := l.enter(); err != nil {
		return nil, err
	}
	if l.spring("fetch", false) {
		return nil, errGone
	}
	got, err := l.reader.Fetch(ctx, max, wait)
	time.Sleep(l.late(leaseOf * 3 / 2)) // the process was suspended, and may have lost its lease
	if len(got) > 0 && l.spring("fetch", true) {
		return nil, errGone
	}
	if gone := l.enter(); gone != nil {
		return nil, gone // delivered, and never acknowledged
	}
	for i := range got {
		ack := got[i].Ack
		got[i].Ack = func() error {
			return l.trapped("ack", func() error {
				if err := l.enter(); err != nil {
					return err
				}
				return ack()
			})
		}
	}
	return got, err
}

// Queue implements stream.ReportReader.
func (l *link) Queue(ctx context.Context) (stream.Queue, error) {
	if err := l.enter(); err != nil {
		return stream.Queue{}, err
	}
	q, err := l.reader.Queue(ctx)
	time.Sleep(l.late(leaseOf * 3 / 2)) // the state of then, returned to a process that was suspended since
	return q, err
}

// Purge implements stream.ReportReader.
func (l *link) Purge(ctx context.Context, before uint64) error {
	return l.trapped("purge", func() error {
		return l.write(ctx, func(ctx context.Context) error { return l.reader.Purge(ctx, before) })
	})
}

// Place implements stream.PlaceAsker.
func (l *link) Place(ctx context.Context, subject string, request []byte) ([]byte, error) {
	answer, asked := make(chan []byte, 1), time.Now()
	err := l.trapped("place", func() error {
		return l.write(ctx, func(ctx context.Context) error {
			data, forged := l.w.forge(request)
			var err error
			if !forged {
				data, err = l.w.broker.Place(ctx, subject, request)
			}
			answer <- data
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	data := <-answer
	l.told(subject, request, data, asked)
	return data, nil
}

// ServePlaces implements stream.PlaceServer: a process that is dead or cut off replies to nobody.
func (l *link) ServePlaces(ctx context.Context, task stream.Task, answer func(string, []byte) []byte) error {
	return l.w.broker.ServePlaces(ctx, task, func(subject string, request []byte) []byte {
		l.mu.Lock()
		asleep := time.Now().Before(l.asleep)
		l.mu.Unlock()
		if asleep { // it arrives when the process goes on, and nobody waits for the reply any more
			l.w.late.Go(func() {
				if l.enter() == nil {
					answer(subject, request)
				}
			})
			return nil
		}
		if l.enter() != nil {
			return nil
		}
		return answer(subject, request)
	})
}

// Limits implements stream.Transport.
func (l *link) Limits() stream.Limits { return l.w.broker.Limits() }
