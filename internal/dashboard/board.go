package dashboard

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/shuffle/stage"
)

// Config is what a page says of a task that does not change.
type Config struct {
	Task Task
	// Model is the released model. It is called when a reader wants a model that is newer than the last one, at most once
	// at a time. Nil shows no weights.
	Model func(context.Context) (model.Snapshot, error)
	Now   func() time.Time // nil: time.Now
}

// A Task is what is learned, as it was planned.
type Task struct {
	Name, Loss, Algorithm, Trust string
	Assuming                     string        // what its epsilon rests on: a clause to write after it, or nothing
	NoiseKnown                   bool          // it follows from a seed: the page promises nothing
	Unit                         string        // what is protected, in words
	Parameters                   int           // length of the model's vector
	Users                        uint64        // planned
	Deadline                     time.Duration // after which a round's minimum is enough; 0: never
}

// A Board is what the page shows. It implements service.Observer. All methods may be called from any goroutine.
type Board struct {
	config Config

	mu sync.Mutex // guards what follows; held for memory operations alone
	state
}

// state is what is known now.
type state struct {
	task      Task
	began     time.Time
	resumed   bool // the task is loaded
	progress  service.Progress
	announced announced
	last      service.Applied // of this process; Took 0 before the first
	voids     uint64          // of this process
	rounds    history[roundPoint]

	rates   history[ratePoint]
	totals  map[string]uint64 // reports by outcome: of the stage, if it counts for us, else of the batches
	counted bool              // totals are the stage's
	sampled time.Time         // of totals, if counted

	brokerLost time.Time // zero: connected
	trouble    string    // why the learner's calls of the broker fail; empty: they work
	stage      stageState
	stopped    *Stop
}

type announced struct {
	round, cohort uint64
	at            time.Time
}

// stageState is what the learner knows of the stage.
type stageState struct {
	asked   bool // Status is what it answered last; otherwise the broker alone is looked at
	status  obs.StageStatus
	silence Silence   // empty: it answers
	since   time.Time // of silence
	grew    time.Time // when users joined the open attempt last, or it was opened
	opened  bool      // an attempt at the announced round stands on the broker
	attempt uint64
}

// A roundPoint is a round that was applied.
type roundPoint struct {
	round                  uint64
	took                   time.Duration
	gradient, noise, model float64 // norms; gradient 0: a round of moments
	validation             *method.Validation
}

// A ratePoint is some time in which reports came.
type ratePoint struct {
	until             time.Time
	seconds           float64
	accepted, refused float64 // reports
}

// sampling is the least time of a ratePoint of a stage's counters.
const sampling = time.Second

// A Silence says why nothing is known of a stage that should answer.
type Silence string

// Why a stage is silent.
const (
	NoAnswer    Silence = "it does not answer"
	NotAStage   Silence = "what answers is not a shuffle stage"
	AnotherTask Silence = "it works for another task"
)

// A Stop is how a learner ended.
type Stop struct {
	How     Ending
	Refused Refusal // of Refused alone
}

// An Ending says how a learner ended.
type Ending int

// How a learner ended: its task is over; its budget refused a round; somebody stopped it; something else, which its log says.
const (
	Over Ending = iota + 1
	Refused
	Interrupted
	Failed
)

// A Refusal is a round that the budget has no room for. Epsilons are upper bounds.
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
	b.rounds.merge = func(_, newer roundPoint) roundPoint { return newer }
	b.rates.merge = func(older, newer ratePoint) ratePoint {
		return ratePoint{until: newer.until, seconds: older.seconds + newer.seconds,
			accepted: older.accepted + newer.accepted, refused: older.refused + newer.refused}
	}
	b.totals = map[string]uint64{}
	return b
}

// Resumed implements service.Observer.
func (b *Board) Resumed(p service.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resumed, b.progress = true, p
}

// Announced implements service.Observer.
func (b *Board) Announced(round, cohort uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.announced = announced{round, cohort, b.config.Now()}
	b.stage.opened, b.stage.attempt = false, 0
}

// Applied implements service.Observer.
func (b *Board) Applied(a service.Applied) {
	now := b.config.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.progress, b.last = a.Progress, a
	if a.Void {
		b.voids++
	} else {
		b.rounds.add(roundPoint{round: a.Round, took: a.Took, gradient: a.GradientNorm, noise: noiseNorm(a, b.config.Task.Parameters),
			model: a.ModelNorm, validation: a.Validation})
	}
	if b.counted {
		return
	}
	refused := uint64(0)
	for reason, n := range a.Rejects {
		b.totals[known(reason)] += n
		refused += n
	}
	b.totals[stage.Accepted.String()] += a.BatchUsers
	b.rates.add(ratePoint{until: now, seconds: a.Took.Seconds(), accepted: float64(a.BatchUsers), refused: float64(refused)})
}

// Trouble implements service.Observer.
func (b *Board) Trouble(cause string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trouble = cause
}

// Broker says whether there is a connection to the broker.
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

// Opened says that an attempt at a round stands on the broker, for a learner that knows no more of its stage.
func (b *Board) Opened(round, attempt uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if round == b.announced.round {
		b.stage.opened, b.stage.attempt = true, attempt
	}
}

// Unopened is the announced round while no attempt at it is known, otherwise 0.
func (b *Board) Unopened() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stage.opened || b.stopped != nil {
		return 0
	}
	return b.announced.round
}

// Stage takes the /status of a stage.
func (b *Board) Stage(s obs.StageStatus) {
	now := b.config.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped != nil { // what comes then is not of this run
		return
	}
	old := b.stage.status
	if grew := s.Round != old.Round || s.Attempt != old.Attempt || s.Users != old.Users; grew || !b.stage.asked {
		b.stage.grew = now
	}
	b.count(s.Reports, now)
	b.stage.asked, b.stage.status, b.stage.silence = true, s, ""
}

// count makes a rate of the stage's counters. One that went back began anew, and so does the rate.
func (b *Board) count(reports map[string]uint64, now time.Time) {
	if reports == nil {
		return
	}
	totals := map[string]uint64{}
	for reason, n := range reports {
		totals[known(reason)] += n
	}
	point := ratePoint{until: now, seconds: now.Sub(b.sampled).Seconds()}
	if b.counted && point.seconds >= 0 && point.seconds < sampling.Seconds() {
		return
	}
	again := !b.counted || point.seconds <= 0
	for reason, n := range totals {
		was := b.totals[reason]
		switch again = again || n < was; {
		case again:
		case reason == stage.Accepted.String():
			point.accepted += float64(n - was)
		default:
			point.refused += float64(n - was)
		}
	}
	switch {
	case !b.counted:
		b.rates = history[ratePoint]{merge: b.rates.merge}
	case !again:
		b.rates.add(point)
	}
	b.counted, b.totals, b.sampled = true, totals, now
}

// StageSilent says that a stage that should answer does not.
func (b *Board) StageSilent(why Silence) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stage.silence == "" {
		b.stage.since = b.config.Now()
	}
	b.stage.asked, b.stage.silence = true, why
}

// Stop says how the learner ended. The first one stands.
func (b *Board) Stop(s Stop) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped == nil {
		b.stopped = &s
	}
}

// look is a copy of what is known, with the time of it.
func (b *Board) look() (state, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.state
	out.totals = maps.Clone(b.totals)
	out.rounds.points, out.rates.points = b.rounds.all(), b.rates.all()
	out.rounds.n, out.rates.n = 0, 0
	return out, b.config.Now()
}

// other stands for every reason that this version does not know.
const other = "other"

func known(reason string) string {
	for _, r := range stage.Reasons() {
		if r.String() == reason {
			return reason
		}
	}
	return other
}
