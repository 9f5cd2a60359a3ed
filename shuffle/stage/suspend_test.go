package stage

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// suspended is the ports of a process whose machine sleeps: a call waits until it is awake. A fetch then brings what
// the broker has sent meanwhile; any other call has lost its connection.
type suspended struct {
	stream.Records
	stream.ReportReader
	at string // the first call of this name puts the machine to sleep; empty: sleep does

	mu     sync.Mutex
	asleep chan struct{} // nil: awake
}

var errAsleep = errors.New("the connection was lost while the machine slept")

func (s *suspended) sleep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asleep = make(chan struct{})
}

func (s *suspended) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.asleep)
	s.asleep = nil
}

// call returns whether the machine slept.
func (s *suspended) call(name string) bool {
	s.mu.Lock()
	if s.at == name {
		s.at, s.asleep = "", make(chan struct{})
	}
	asleep := s.asleep
	s.mu.Unlock()
	if asleep != nil {
		<-asleep
	}
	return asleep != nil
}

func (s *suspended) Get(ctx context.Context, subject string) (stream.Message, error) {
	if s.call("get") {
		return stream.Message{}, errAsleep
	}
	return s.Records.Get(ctx, subject)
}

func (s *suspended) Swap(ctx context.Context, subject string, expected uint64, data []byte) (uint64, error) {
	if s.call("swap") {
		return 0, errAsleep
	}
	return s.Records.Swap(ctx, subject, expected, data)
}

func (s *suspended) Fetch(ctx context.Context, max int, wait time.Duration) ([]stream.Delivery, error) {
	s.call("fetch")
	return s.ReportReader.Fetch(context.WithoutCancel(ctx), max, wait)
}

func (s *suspended) Queue(ctx context.Context) (stream.Queue, error) {
	s.call("queue")
	return s.ReportReader.Queue(context.WithoutCancel(ctx))
}

func (s *suspended) Purge(ctx context.Context, before uint64) error {
	s.call("purge")
	return s.ReportReader.Purge(context.WithoutCancel(ctx), before)
}

// stood stops the monotonic clock of a process for a while. With wall it stops the wall clock too, as on a virtual
// machine that was paused.
func (l *lease) stood(d time.Duration, wall bool) {
	l.until, l.due, l.seen = l.until.Add(d), l.due.Add(d), l.seen.Add(d)
	if wall {
		l.asleep = l.asleep.Add(d)
	} else {
		l.ahead += d
	}
}

// TestSuspendedStageTakesNothing: a stage sleeps for longer than its lease, wakes, and believes by its clocks to have
// it still. Reports to its successor's attempt reach the successor, even if they were delivered to the one that slept,
// or were in the range that it would purge.
func TestSuspendedStageTakesNothing(t *testing.T) {
	// longer than the lease, and over before a stage that collects looks whether others opened the round since
	const pause = 13 * time.Second
	for name, test := range map[string]struct {
		at   string
		wall bool
	}{
		"suspended, collecting": {"", false}, "paused, collecting": {"", true},
		"suspended, clearing": {"queue", false}, "paused, clearing": {"queue", true},
		"suspended, its purge under way": {"purge", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, plan{cohort: 10})
				w.announce(t.Context())
				first := w.config()
				ports := &suspended{Records: first.Records, ReportReader: first.Reports, at: test.at}
				first.Records, first.Reports = ports, ports
				old := stream.Outgoing{Subject: w.name.Report(1, 9), ID: randomID(), Data: []byte("to be purged")}
				if _, err := w.broker.Publish(t.Context(), []stream.Outgoing{old}); err != nil {
					t.Fatal(err)
				}
				a, stopA := w.start(first)
				time.Sleep(5 * time.Second)
				after := stream.Attempt(0)
				if test.at == "" {
					in := w.invited(t.Context(), 1, 0)
					w.answer(t.Context(), in, w.users(1)[:3])
					ports.sleep()
					after = 1
				}
				second := w.config()
				gate := &gated{second.Reports, make(chan struct{})}
				second.Reports = gate
				_, stopB := w.start(second)
				time.Sleep(pause)
				in := w.invited(t.Context(), 1, after)
				w.answer(t.Context(), in, w.users(1))
				synctest.Wait()
				a.lease.stood(pause, test.wall)
				ports.wake()
				time.Sleep(3 * time.Second) // it fetches, or purges
				close(gate.open)
				time.Sleep(30 * time.Second) // AckWait
				if b, _ := w.batch(1); b == nil || b.Void || b.Users != 10 || b.Attempt != uint64(after)+1 {
					t.Errorf("batch %v", b)
				}
				_, _ = stopA(), stopB()
			})
		})
	}
}

// TestSuspendedStageGoesOn: where nobody has taken the lease meanwhile, the attempt of a stage that slept is as good
// as ever.
func TestSuspendedStageGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan{cohort: 10})
		w.announce(t.Context())
		c := w.config()
		dropped := 0
		c.Observer.Dropped = func(stream.Round, stream.Attempt) { dropped++ }
		var s *Stage
		slept := false
		c.Observer.Fill = func(users, _ uint64) { // on Run's goroutine
			if users == 3 && !slept {
				slept = true
				s.lease.stood(time.Hour, false)
				if s.lease.holds(time.Now()) {
					t.Error("a lease is held an hour after it was renewed")
				}
			}
		}
		s = w.new(c)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		in := w.invited(t.Context(), 1, 0)
		w.answer(t.Context(), in, w.users(1)[:3])
		time.Sleep(5 * time.Second)
		w.answer(t.Context(), in, w.users(1)[3:])
		time.Sleep(5 * time.Second)
		if b, _ := w.batch(1); b == nil || b.Users != 10 || b.Attempt != 1 || dropped != 0 || !slept {
			t.Errorf("batch %v, %d attempts dropped, slept %t", b, dropped, slept)
		}
		stop()
		<-done
	})
}
