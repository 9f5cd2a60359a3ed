package dashboard

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/shuffle/stage"
)

// Config holds what the page shows of a task and does not change.
type Config struct {
	Task Task
	// Model returns the released model. It is called when a reader requests a newer model than the last one, at most once
	// at a time. Nil shows no weights.
	Model func(context.Context) (Model, error)
	Now   func() time.Time // nil: time.Now
	// Record is the file that keeps the curves over a restart. Empty: none.
	Record string
}

// A Model is a released model. Spread has about the standard deviation of each feature, in the units of the data, as
// the first cohorts released it; nil where the plan releases none.
type Model struct {
	model.Snapshot
	Spread []float64
}

// A Task describes a task as it was planned.
type Task struct {
	wording.Kind                 // of its plan
	Name, Loss, Algorithm, Trust string
	// what the model that learning began with adds, in sentences; empty: there is none
	Start      string
	Assuming   string // the assumption behind its epsilon: a clause to write after it, or nothing
	NoiseKnown bool   // the noise follows from a seed: the page promises nothing
	Parameters int    // length of the model's vector
	Classes    int    // of the labels; 0: numbers
	// of squared loss: what 1 of a label as the loss sees it is in the units of the data; 0: another loss
	LabelUnit float64
	Unscored  bool          // reports have no scores: nothing is known of how good the model is
	Users     uint64        // planned, as Counted counts
	Deadline  time.Duration // after which a round's minimum is enough; 0: never
	// Needs returns how many reporters, as Counted counts them, the plan's rounds need after so many steps. Nil for a
	// task without end.
	Needs    func(steps uint64) uint64
	Expected *Expected // nil: not known
	Devices  string    // how they reach the broker; empty: not known
	// Guests is the number of places that a cohort keeps for people who open Invitation, the path of a page, in a browser.
	Guests     uint64
	Invitation string
}

// theirRows returns the words for the rows of those who report.
func (t Task) theirRows() string { return t.Reporter().Many + "' " + t.Row().Many }

// bring advises what to do if too few reports come.
func (t Task) bring() string {
	switch {
	case t.Silos == 0:
		return "Bring more publishers, or users who have not taken part: who has is not asked again."
	case t.Interactive:
		return "See that the publishers of all silos run."
	}
	return "See that the publishers of all silos run and have records left: a record takes part once."
}

// once returns the sentence on who is not asked again; empty for silos.
func (t Task) once() string {
	if t.Silos > 0 {
		return ""
	}
	return " Who has taken part is not asked again."
}

// Expected holds what a plan proves of the model before anybody takes part.
type Expected struct {
	Bounded bool    `json:"bounded"`         // otherwise the plan proves no bound
	Risk    float64 `json:"risk,omitempty"`  // bound on the expected loss above the best model's
	Start   float64 `json:"start,omitempty"` // bound on the start's loss, likewise
}

// A Board holds the state that the page shows. Observer feeds it. All methods may be called from any
// goroutine.
type Board struct {
	config Config
	saving sync.Mutex // one record is written at a time; taken before mu

	mu sync.Mutex // guards the fields below; held only for operations in memory
	state
}

// state holds everything known at the moment.
type state struct {
	task      Task
	began     time.Time
	resumed   bool // the task is loaded
	progress  service.Progress
	announced announced
	last      service.Applied // of this process; Took 0 before the first
	rounds    history[roundPoint]
	since     marks // after the newest point
	laps      pace
	void      time.Duration // that void rounds took since the newest lap
	saved     uint64        // round of the record
	savedAt   time.Time

	rates   history[ratePoint]
	totals  map[string]uint64            // reports by outcome: of the stages, if they count for us, else of the batches
	counts  map[string]map[string]uint64 // of each stage process that counts, as it said last
	sampled time.Time                    // of counts

	brokerLost time.Time     // zero: connected
	trouble    string        // why the learner's calls of the broker fail; empty: they work
	troubled   time.Time     // since when
	lost       uint64        // records that the broker had acknowledged, in the life of this process
	lostAt     time.Time     // the last of them was missed
	ahead      time.Duration // of our clock; see Clock
	stage      stageState
	stopped    *Stop
}

type announced struct {
	round, cohort uint64
	at            time.Time
}

// A Stop describes how a learner ended.
type Stop struct {
	How     ending
	Refused Refusal // of Refused alone
}

// An Ending is the way in which a learner ended.
type ending int

// The endings of a learner: its task is over; its budget refused a round; somebody stopped it; something else, which
// is in its log.
const (
	Over ending = iota + 1
	Refused
	Interrupted
	Failed
)

// A Refusal describes a round that the budget has no room for. Epsilons are upper bounds.
type Refusal struct {
	Round                uint64  // 1: nothing was announced
	Spent, Total, Budget float64 // Total: with the round
}

// New makes a page of one task.
func New(c Config) *Board {
	if c.Now == nil {
		c.Now = time.Now
	}
	b := &Board{config: c}
	b.began, b.task = c.Now(), c.Task
	b.rounds.merge, b.rates.merge, b.totals = mergeRounds, mergeRates, map[string]uint64{}
	if c.Record != "" {
		if r, err := load(c.Record, c.Task.Name); err == nil { // otherwise the curves begin here
			b.restore(r)
		}
	}
	return b
}

// Observer returns the observer of a learner that feeds the board.
func (b *Board) Observer() service.Observer {
	return service.Observer{Resumed: b.Resumed, Announced: b.Announced, Applied: b.Applied, Trouble: b.Trouble,
		Lost: b.Lost}
}

// Resumed records the committed state with which the learner begins.
func (b *Board) Resumed(p service.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resumed, b.progress = true, p
	b.forget(p.Round, p.Users)
	b.saved = p.Round
}

// Announced records a round that is on the broker.
func (b *Board) Announced(round, cohort uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.announced = announced{round, cohort, b.config.Now()}
	b.stage.opened, b.stage.attempt = false, 0
}

// Applied records a committed round.
func (b *Board) Applied(a service.Applied) {
	now := b.config.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.progress, b.last = a.Progress, a
	b.since.Reopened += max(a.Attempt, 1) - 1
	if a.Void {
		b.since.Void++
		b.void += a.Took
	} else {
		b.rounds.add(pointOf(a, now, b.config.Task.Parameters, b.since))
		b.laps = append(b.laps[max(0, len(b.laps)+1-paced):], lap{a.Took + b.void, a.BatchUsers})
		b.since, b.void = marks{}, 0
	}
	if b.counts != nil {
		return
	}
	refused := uint64(0)
	for reason, n := range a.Rejects {
		b.totals[known(reason)] += n
		refused += n
	}
	b.totals[stage.Accepted.String()] += a.BatchUsers
	b.rates.add(ratePoint{until: now, seconds: a.Took.Seconds(), accepted: float64(a.BatchUsers),
		refused: float64(refused)})
}

// Trouble records why calls of the broker fail, or "" when they work again.
func (b *Board) Trouble(cause string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cause != "" && b.trouble == "" {
		b.troubled = b.config.Now()
	}
	b.trouble = cause
}

// Lost records that the broker lost a record.
func (b *Board) Lost(string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost, b.lostAt = b.lost+1, b.config.Now()
}

// Broker records whether there is a connection to the broker.
func (b *Board) Broker(connected bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case connected:
		b.brokerLost = time.Time{}
	case b.brokerLost.IsZero():
		b.brokerLost = b.config.Now()
	}
}

// Clock records by how much, at least, the learner's clock is ahead of the broker's; negative if it is behind.
func (b *Board) Clock(ahead time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ahead = ahead
}

// Stop records how the learner ended. Only the first call counts.
func (b *Board) Stop(s Stop) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped == nil {
		b.stopped = &s
	}
}

// look returns a copy of the state, with its time.
func (b *Board) look() (state, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.state
	out.totals = maps.Clone(b.totals)
	out.rounds.points, out.rates.points = b.rounds.all(), b.rates.all()
	out.rounds.n, out.rates.n = 0, 0
	out.stage.answers = slices.Clone(b.stage.answers)
	out.laps = slices.Clone(b.laps)
	return out, b.config.Now()
}
