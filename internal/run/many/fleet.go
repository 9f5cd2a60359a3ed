package many

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/panlearn/panlearn/internal/panics"
	"github.com/panlearn/panlearn/stream"
)

// Periods.
const (
	every       = 2 * time.Second // between looks at the list
	firstWait   = time.Second     // before a failed member is started again; doubles with each failure in a row
	longestWait = time.Minute
)

// Config configures a fleet.
type Config struct {
	List List
	// Run runs one task until it has ended (nil), it fails, or ctx is done. What it registers and shows through its
	// seat is gone when it returns. An error that stays the same when the member is started again is marked by [Lasting].
	Run      func(ctx context.Context, e Entry, seat *Seat) error
	Starting string // says in a sentence what a member does that shows nothing yet
	Over     string // says in a sentence that a member returned without an error; empty: that the task has ended
	Logger   *slog.Logger
}

// A lasting error stays the same when its member is started again.
type lasting struct{ error }

func (e *lasting) Unwrap() error { return e.error }

// Lasting marks an error that stays the same when its member is started again: a fleet does not do that before the task
// file changes. It returns nil for nil.
func Lasting(err error) error {
	if err == nil {
		return nil
	}
	return &lasting{err}
}

// A state names what a task of a fleet does.
type state string

// The states of a task. Running says that its member runs: what the member says of itself is in Row.Line.
const (
	Running state = "running"
	Ended   state = "ended"
	Waiting state = "waiting" // failed, and is started again
	refused state = "refused" // failed, and is not started again before its file changes
	Faulty  state = "faulty"  // a file that is no task
)

// A Row describes one task, or a file that is none.
type Row struct {
	Task  string     `json:"task"` // empty: a faulty file
	State state      `json:"state"`
	Since time.Time  `json:"since"`
	Line  string     `json:"line"`            // what it does, in a sentence
	Wrong bool       `json:"wrong"`           // somebody has to look
	Again *time.Time `json:"again,omitempty"` // of Waiting: when it is started
	File  string     `json:"file"`
	Doing any        `json:"status,omitempty"` // what /status of the same role says of one task
}

// Shown holds the endpoints and the sentence of a member that runs.
type Shown struct {
	Handler http.Handler                     // its endpoints, from / on
	Line    func() (line string, wrong bool) // what it does, in a sentence
	Status  func() any                       // nil: none
}

// A Seat is a member's place in its fleet.
type Seat struct {
	Registry *prometheus.Registry // of its metrics alone

	mu       sync.Mutex
	shown    *Shown
	panicked error
}

// Caught calls f and returns its error. A panic of f is an error too, which the fleet shows from then on, also of a
// member that does not return. Whatever a member runs in another goroutine goes through it, or through panics.First.
func (s *Seat) Caught(f func() error) error {
	err := panics.Caught(f)
	if errors.As(err, new(*panics.Error)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.panicked = cmp.Or(s.panicked, err)
	}
	return err
}

// Show has the fleet show a member from now until it returns.
func (s *Seat) Show(shown Shown) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = &shown
}

func (s *Seat) now() (shown *Shown, panicked error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown, s.panicked
}

// A member is a task that is or was on the list.
type member struct {
	entry  Entry
	cancel context.CancelFunc // nil: it does not run
	seat   *Seat              // of the one that runs
	state  state
	since  time.Time
	err    error
	fails  int // in a row
	again  time.Time
}

// A Fleet runs the tasks of a list.
type Fleet struct {
	config Config
	ended  chan *ending

	mu      sync.Mutex // guards what follows
	members map[stream.Task]*member
	faults  map[string]faulty    // by file
	trouble error                // why the list cannot be read
	changed map[stream.Task]bool // tasks with a file that differs from what runs
}

// An ending holds the error with which a member returned.
type ending struct {
	of  *member
	err error
}

// New returns a fleet.
func New(c Config) *Fleet {
	return &Fleet{config: c, ended: make(chan *ending), members: map[stream.Task]*member{},
		changed: map[stream.Task]bool{}}
}

// Run follows the list until ctx is done, and returns when every member has.
func (f *Fleet) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer func() {
		gone := make(chan struct{})
		go func() {
			running.Wait()
			close(gone)
		}()
		for {
			select {
			case <-f.ended: // nobody else reads them now
			case <-gone:
				return
			}
		}
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		f.follow(ctx, &running)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-f.ended:
			f.returned(ctx, e)
		case <-tick.C:
		}
	}
}

// follow reads the list, ends members with tasks that are not on it any more, and starts members that should run.
func (f *Fleet) follow(ctx context.Context, running *sync.WaitGroup) {
	if ctx.Err() != nil {
		return
	}
	entries, faults, err := f.config.List.Tasks()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.say(err); err != nil {
		return // the members that run go on
	}
	f.tell(faults)
	on := map[stream.Task]bool{}
	for _, e := range entries {
		on[e.Name] = true
		m := f.members[e.Name]
		if m == nil {
			f.config.Logger.Info("a task was added", "task", e.Name, "file", e.File)
			m = &member{entry: e}
			f.members[e.Name] = m
			f.start(ctx, m, running)
			continue
		}
		other := m.entry.sum != e.sum
		switch {
		case m.cancel != nil:
			f.differs(m, other)
		case other:
			m.entry, m.fails = e, 0
			f.start(ctx, m, running)
		case m.state == Waiting && !time.Now().Before(m.again):
			f.start(ctx, m, running)
		}
	}
	for name, m := range f.members {
		switch {
		case on[name]:
		case m.cancel != nil:
			if m.state != Ended {
				f.config.Logger.Info("a task was taken off the list: it stops, and its state folder stays", "task", name)
				m.state = Ended
			}
			m.cancel() // it is forgotten when it has returned
		default:
			delete(f.members, name)
			delete(f.changed, name)
		}
	}
}

// differs notes whether the file of a running task was changed.
func (f *Fleet) differs(m *member, other bool) {
	if other && !f.changed[m.entry.Name] {
		f.config.Logger.Warn("the task file was changed while its task runs: what runs stays as it was, until the next start",
			"task", m.entry.Name, "file", m.entry.File)
	}
	f.changed[m.entry.Name] = other
}

// say logs why the list cannot be read, once.
func (f *Fleet) say(err error) {
	if err != nil && f.trouble == nil {
		f.config.Logger.Warn("the list of tasks cannot be read: those that run go on", "error", err)
	}
	f.trouble = err
}

// A faulty holds the fault of a file, and its time.
type faulty struct {
	text  string
	since time.Time
}

// tell logs faults that are new.
func (f *Fleet) tell(faults []Fault) {
	now := map[string]faulty{}
	for _, fault := range faults {
		is := faulty{fault.Err.Error(), time.Now()}
		if was, known := f.faults[fault.File]; known && was.text == is.text {
			is = was
		} else {
			f.config.Logger.Warn("a task file cannot be used", "file", fault.File, "error", fault.Err)
		}
		now[fault.File] = is
	}
	f.faults = now
}

func (f *Fleet) start(ctx context.Context, m *member, running *sync.WaitGroup) {
	ctx, cancel := context.WithCancel(ctx)
	m.cancel, m.seat = cancel, &Seat{Registry: prometheus.NewRegistry()}
	m.state, m.since, m.err = Running, time.Now(), nil
	delete(f.changed, m.entry.Name)
	entry, seat := m.entry, m.seat
	running.Go(func() {
		defer cancel()
		err := seat.Caught(func() error { return f.config.Run(ctx, entry, seat) })
		f.ended <- &ending{of: m, err: err}
	})
}

// returned notes how a member returned.
func (f *Fleet) returned(ctx context.Context, e *ending) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, log := e.of, f.config.Logger.With("task", e.of.entry.Name)
	ran := time.Since(m.since)
	stopped := m.state == Ended // it was taken off the list
	m.cancel, m.seat, m.since = nil, nil, time.Now()
	switch {
	case ctx.Err() != nil:
		return
	case stopped:
		if e.err != nil && !errors.Is(e.err, context.Canceled) {
			log.Warn("a task that was taken off the list stopped with an error", "error", e.err)
		}
		delete(f.members, m.entry.Name) // should it be listed again, it starts from its state folder
	case e.err == nil:
		m.state = Ended
		log.Info("a task has ended")
	case errors.As(e.err, new(*lasting)):
		m.state, m.err = refused, e.err
		log.Error("a task was refused: it is tried again when its file changes, or with a new process", "error", e.err)
	default:
		if ran > longestWait {
			m.fails = 0
		}
		wait := min(firstWait<<min(m.fails, 16), longestWait)
		m.fails++
		m.state, m.err, m.again = Waiting, e.err, m.since.Add(wait)
		log.Warn("a task failed: it is tried again", "error", e.err, "after", wait)
	}
}

// Rows returns what is to say of each task and each faulty file, in the order of their names.
func (f *Fleet) Rows() []Row {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Row
	for _, m := range f.members {
		out = append(out, f.row(m))
	}
	for file, is := range f.faults {
		out = append(out, Row{State: Faulty, Since: is.since, Line: is.text, Wrong: true, File: file})
	}
	slices.SortFunc(out, func(a, b Row) int {
		return cmp.Or(strings.Compare(a.Task, b.Task), strings.Compare(a.File, b.File))
	})
	return out
}

func (f *Fleet) row(m *member) Row {
	r := Row{Task: string(m.entry.Name), State: m.state, Since: m.since, File: m.entry.File}
	switch {
	case m.cancel != nil && m.state == Ended:
		r.Line = "It was taken off the list, and stops."
	case m.state == Ended:
		r.Line = cmp.Or(f.config.Over, "The task has ended.")
	case m.state == Waiting:
		again := m.again
		r.Again, r.Wrong, r.Line = &again, true, m.err.Error()
	case m.state == refused:
		r.Wrong, r.Line = true, m.err.Error()
	default:
		r.Line = f.config.Starting
		s, panicked := m.seat.now()
		switch {
		case panicked != nil:
			r.Wrong, r.Line = true, panicked.Error()+". It stops; where it still does in a minute, start the process again."
		case s != nil:
			r.Line, r.Wrong = s.Line()
			if s.Status != nil {
				r.Doing = s.Status()
			}
		}
		if f.changed[m.entry.Name] {
			r.Wrong, r.Line = true, r.Line+" Its file was changed since: what runs stays as it was."
		}
	}
	return r
}

// shown returns what a task shows, or an error that says why it shows nothing.
func (f *Fleet) shown(name string) (*Shown, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[stream.Task(name)]
	if m == nil {
		return nil, errNoTask
	}
	if m.seat != nil {
		if s, panicked := m.seat.now(); s != nil && panicked == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("task %s: %s", name, f.row(m).Line)
}

// errNoTask is the error of a name that is not on the list.
var errNoTask = errors.New("no such task is on the list")

// registries returns the registries of the members that run.
func (f *Fleet) registries() (out prometheus.Gatherers) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if m.seat != nil {
			out = append(out, m.seat.Registry)
		}
	}
	return out
}

// failing returns for each task, and for each faulty file by its name, whether it fails.
func (f *Fleet) failing() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]bool{}
	for name, m := range f.members {
		out[string(name)] = m.state == Waiting || m.state == refused
		if m.seat != nil {
			if _, panicked := m.seat.now(); panicked != nil {
				out[string(name)] = true
			}
		}
	}
	for file := range f.faults {
		out[filepath.Base(file)] = true
	}
	return out
}
