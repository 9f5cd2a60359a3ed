package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
)

const (
	// maxTasks bounds the tasks that are followed at one time.
	maxTasks = 1024
	// lookEvery is the interval at which a follower looks for what no wake told it.
	lookEvery = 5 * time.Second
	// idleAfter is the time without requests after which a task is not followed any more.
	idleAfter = 2 * time.Minute
	// lagPause is the pause before a record that a wake announced is read again where it is not there yet: a replica may
	// lag. It doubles, lagTries times.
	lagPause = 20 * time.Millisecond
	lagTries = 6
)

var (
	errNoTask    = errors.New("the broker has no such task")
	errNotServed = errors.New("this relay does not serve that task") // whether the broker has it or not
	errBusy      = errors.New("as many tasks are asked for as this relay follows")
	errClosed    = errors.New("the relay is stopping")
)

// A follower keeps the names of one task's newest records, for all requests.
type follower struct {
	all  *followers
	task stream.Task
	used atomic.Int64 // Unix time of the last request, in seconds

	mu      sync.Mutex
	state   relayhttp.State
	known   bool          // a look was answered
	pairs   bool          // an attempt of the task is an Open and a Join
	changed chan struct{} // closed when state or known is another

	sizing  sync.Mutex // guards what follows
	sizes   []int      // lengths of messages of reports, ascending
	unsized error      // why they are not known
	sized   time.Time  // when the Task was read
}

// followers holds the follower of each task that is requested.
type followers struct {
	broker Broker
	tasks  []stream.Task // those that are served; none: all that the broker has
	log    *slog.Logger
	// sizes returns the lengths that a task's messages may have; a test may have another
	sizes func(context.Context, stream.Task) ([]int, error)

	ctx     context.Context // of all that outlives a request
	stop    context.CancelFunc
	working sync.WaitGroup

	mu sync.Mutex
	of map[stream.Task]*follower // guarded by mu
}

func newFollowers(c Config) *followers {
	s := &followers{broker: c.Broker, tasks: c.Tasks, log: c.Logger, of: make(map[stream.Task]*follower)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.sizes = s.readSizes
	return s
}

func (s *followers) close() {
	s.stop()
	s.working.Wait()
}

// serves reports whether a task is one of those that the configuration names, if it names any.
func (s *followers) serves(task stream.Task) bool {
	return len(s.tasks) == 0 || slices.Contains(s.tasks, task)
}

// follow returns the follower of a task, which it starts where there is none.
func (s *followers) follow(ctx context.Context, task stream.Task) (*follower, error) {
	if !s.serves(task) {
		return nil, errNotServed
	}
	if f := s.followed(task); f != nil {
		return f, nil
	}
	if len(s.tasks) == 0 { // an invented name costs one read, and no more
		ctx, cancel := context.WithTimeout(ctx, brokerTime)
		defer cancel()
		if _, err := s.broker.Get(ctx, task.Task()); errors.Is(err, stream.ErrNotFound) {
			return nil, errNoTask
		} else if err != nil {
			return nil, fmt.Errorf("read the task: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.of[task]; f != nil {
		return f, nil
	}
	switch {
	case s.ctx.Err() != nil:
		return nil, errClosed
	case len(s.of) >= maxTasks:
		return nil, errBusy
	}
	f := &follower{all: s, task: task, changed: make(chan struct{})}
	f.used.Store(time.Now().Unix())
	s.of[task] = f
	s.working.Go(f.run)
	return f, nil
}

// followed returns the follower of a task, nil where there is none, and keeps it going.
func (s *followers) followed(task stream.Task) *follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.of[task]
	if f != nil {
		f.used.Store(time.Now().Unix())
	}
	return f
}

// leave ends a follower that nobody has asked for lately.
func (f *follower) leave() bool {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	if time.Since(time.Unix(f.used.Load(), 0)) < idleAfter {
		return false
	}
	delete(f.all.of, f.task)
	return true
}

// run follows the task until it is not requested any more or the relay closes.
func (f *follower) run() {
	ctx, cancel := context.WithCancel(f.all.ctx)
	defer cancel()
	var wakes <-chan stream.Wake
	var trouble stream.Trouble
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if wakes == nil {
			wakes, _ = f.all.broker.Watch(ctx, f.task) // else the timer alone looks
		}
		var err error
		select {
		case <-ctx.Done():
			return
		case w, ok := <-wakes:
			switch {
			case !ok:
				wakes = nil
				continue
			case w.Subject == "":
				err = f.look(ctx)
			default:
				err = f.heard(ctx, w)
			}
		case <-timer.C:
			if f.leave() {
				return
			}
			err = f.look(ctx)
			timer.Reset(lookEvery)
		}
		switch {
		case err == nil && trouble.Over():
			f.all.log.Info("the broker answers again", "task", f.task)
		case err != nil && ctx.Err() == nil:
			f.all.log.Log(ctx, trouble.Level(time.Now(), err), "cannot read the task's records", "task", f.task, "err", err)
		}
	}
}

// set replaces the state, and wakes waiting requests if a mark has changed.
func (f *follower) set(s relayhttp.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	same := f.known && f.state.Tag() == s.Tag()
	f.state, f.known = s, true
	if !same {
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

// now returns the state and a channel that is closed when it changes; known is false before the broker has answered.
func (f *follower) now() (s relayhttp.State, known bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state, f.known, f.changed
}

// look reads which records are the newest. The broker's records are taken even if it had later ones before.
func (f *follower) look(ctx context.Context) error {
	s, _, _ := f.now()
	var err error
	if s.Task, err = f.readTask(ctx); err != nil {
		return err
	}
	if s.End, err = f.mark(ctx, f.task.End()); err != nil {
		return err
	}
	if s.Round, err = f.newest(ctx, s.Round.Round); err != nil {
		return err
	}
	if err := f.attempts(ctx, &s, s.Round.Round); err != nil {
		return err
	}
	if err := f.lease(ctx, &s); err != nil {
		return err
	}
	f.set(s)
	return nil
}

// attempts reads the newest attempt at a round, and its Claim and Close if the round has them. Until there are some, it
// keeps those of an earlier round.
func (f *follower) attempts(ctx context.Context, s *relayhttp.State, round stream.Round) (err error) {
	if round == 0 {
		s.Open, s.Join, s.Claim, s.Close = relayhttp.Mark{}, relayhttp.Mark{}, relayhttp.Mark{}, relayhttp.Mark{}
		return nil
	}
	open, err := f.latest(ctx, f.task.Opens(round))
	if err == nil {
		err = f.pair(ctx, s, open, nil)
	}
	if err != nil {
		return err
	}
	claim, err := f.mark(ctx, f.task.Claim(round))
	if err != nil {
		return err
	}
	if claim.Sequence > 0 || s.Claim.Round > round {
		s.Claim = claim
	}
	if s.Open.Sequence == 0 {
		if s.Close.Round > round {
			s.Close = relayhttp.Mark{}
		}
		return nil
	}
	closed, err := f.mark(ctx, f.task.Close(round, s.Open.Attempt))
	if closed.Sequence > 0 || s.Close.Round > round {
		s.Close = closed
	}
	return err
}

// newest returns the newest round: the next numbers are read where one is known, else the broker looks through all.
func (f *follower) newest(ctx context.Context, known stream.Round) (relayhttp.Mark, error) {
	var m relayhttp.Mark
	var err error
	if known > 0 {
		m, err = f.mark(ctx, f.task.Round(known))
	}
	if err == nil && m.Sequence == 0 {
		m, err = f.latest(ctx, f.task.Rounds())
	}
	for err == nil && m.Sequence > 0 {
		var next relayhttp.Mark
		if next, err = f.mark(ctx, f.task.Round(m.Round+1)); err != nil || next.Sequence == 0 {
			break
		}
		m = next
	}
	return m, err
}

func (f *follower) lease(ctx context.Context, s *relayhttp.State) error {
	m, err := f.get(ctx, f.task.Lease())
	s.Lease, s.LeaseTime = m.Data, m.Time
	return err
}

// get reads a record; a message without a sequence is none.
func (f *follower) get(ctx context.Context, subject string) (stream.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, brokerTime)
	defer cancel()
	m, err := f.all.broker.Get(ctx, subject)
	if errors.Is(err, stream.ErrNotFound) {
		return stream.Message{}, nil
	}
	return m, err
}

func (f *follower) mark(ctx context.Context, subject string) (relayhttp.Mark, error) {
	m, err := f.get(ctx, subject)
	if err != nil {
		return relayhttp.Mark{}, err
	}
	return markOf(m), nil
}

func (f *follower) latest(ctx context.Context, pattern string) (relayhttp.Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, brokerTime)
	defer cancel()
	m, err := f.all.broker.Latest(ctx, pattern)
	switch {
	case errors.Is(err, stream.ErrNotFound):
		return relayhttp.Mark{}, nil
	case err != nil:
		return relayhttp.Mark{}, err
	}
	return markOf(m), nil
}

func markOf(m stream.Message) relayhttp.Mark {
	if m.Sequence == 0 {
		return relayhttp.Mark{}
	}
	a, _ := stream.ParseSubject(m.Subject) // of a port, which checks it
	return relayhttp.Mark{Round: a.Round, Attempt: a.Attempt, Sequence: m.Sequence, Hash: relayhttp.HashOf(m.Data)}
}

// heard reads the record that a wake announces: anybody who can send wakes can announce a record that does not exist.
func (f *follower) heard(ctx context.Context, w stream.Wake) error {
	a, err := stream.ParseSubject(w.Subject)
	if err != nil || a.Task != f.task {
		return nil
	}
	want, pause := relayhttp.HashOf(w.Data), lagPause
	var got relayhttp.Mark
	for range lagTries {
		if got, err = f.mark(ctx, w.Subject); err != nil {
			return err
		}
		if got.Sequence > 0 && got.Hash == want {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause *= 2
	}
	if got.Sequence == 0 {
		return nil
	}
	s, known, _ := f.now()
	if !known {
		return f.look(ctx)
	}
	switch a.Verb {
	case "task":
		if s.Task, err = f.readTask(ctx); err != nil {
			return err
		}
	case "end":
		s.End = got
	case "round":
		forward(&s.Round, got)
	case "open", "join":
		if err := f.heardPart(ctx, &s, a, got); err != nil {
			return err
		}
	case "claim":
		forward(&s.Claim, got)
	case "close":
		forward(&s.Close, got)
	}
	f.set(s)
	return nil
}

// forward replaces a known mark by m, unless m is older.
func forward(known *relayhttp.Mark, m relayhttp.Mark) {
	if m.Round > known.Round || m.Round == known.Round && m.Attempt >= known.Attempt {
		*known = m
	}
}
