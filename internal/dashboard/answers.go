package dashboard

import (
	"maps"
	"time"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/shuffle/stage"
)

// An Answer is the status that a stage process returned, or the reason why there is none.
type Answer struct {
	Name    string // of the process: its host and port; empty: there is one
	Status  obs.StageStatus
	Silence Silence // empty: Status is what it answered
}

// A Silence is the reason why nothing is known of a stage that should answer.
type Silence string

// Why a stage is silent.
const (
	noAnswer    Silence = "it does not answer"
	notAStage   Silence = "what answers is not a shuffle stage"
	anotherTask Silence = "it works for another task"
)

// stageState holds what the learner knows of the stage.
type stageState struct {
	answers []Answer
	asked   bool            // every stage process is asked; otherwise only the broker is read
	status  obs.StageStatus // of the process that works, or of one that replies; otherwise the last one
	silence Silence         // of all of them; empty: one replies
	since   time.Time       // of silence
	idle    time.Time       // since when none of them has worked; zero: one works
	grew    time.Time       // when users joined the open attempt last, or it was opened
	opened  bool            // the broker has an attempt at the announced round
	attempt uint64
}

// Opened reports to the board that the broker has an attempt at a round, for a learner that knows no more of its
// stage.
func (b *Board) Opened(round, attempt uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if round == b.announced.round {
		b.stage.opened, b.stage.attempt = true, attempt
	}
}

// Unopened returns the announced round while no attempt at it is known, otherwise 0.
func (b *Board) Unopened() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stage.opened || b.stopped != nil {
		return 0
	}
	return b.announced.round
}

// stages records the answers of the stage processes, always the same ones in the same order.
func (b *Board) stages(answers ...Answer) {
	now := b.config.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped != nil || len(answers) == 0 { // what comes then is not of this run
		return
	}
	s := &b.stage
	var best *obs.StageStatus
	for i := range answers {
		if a := &answers[i].Status; answers[i].Silence == "" && (best == nil || a.Works && !best.Works || a.Works &&
			a.Cohort > best.Cohort) {
			best = a
		}
	}
	s.answers = answers
	switch works := best != nil && best.Works; {
	case works:
		s.idle = time.Time{}
	case s.idle.IsZero():
		s.idle = now
	}
	if best == nil {
		if s.silence == "" {
			s.since = now
		}
		s.asked, s.silence = true, answers[0].Silence
		return
	}
	if old := s.status; !s.asked || best.Round != old.Round || best.Attempt != old.Attempt || best.Users != old.Users {
		s.grew = now
	}
	s.asked, s.status, s.silence = true, *best, ""
	b.count(answers, now)
}

// Stage is Stages for a single process.
func (b *Board) Stage(s obs.StageStatus) { b.stages(Answer{Status: s}) }

// sampling is the least time of a ratePoint of a stage's counters.
const sampling = time.Second

// count turns the stages' counters into a point of rates. What a counter had reached before it was first seen, or
// before it fell because its process was restarted, is in no rate.
func (b *Board) count(answers []Answer, now time.Time) {
	point := ratePoint{until: now, seconds: now.Sub(b.sampled).Seconds()}
	if b.counts != nil && point.seconds >= 0 && point.seconds < sampling.Seconds() {
		return
	}
	known, fresh := b.counts != nil, map[string]map[string]uint64{}
	comparable := false
	for _, a := range answers {
		if a.Silence != "" || a.Status.Reports == nil {
			continue
		}
		reports := byReason(a.Status.Reports)
		fresh[a.Name] = reports
		if was, ok := b.counts[a.Name]; ok && grown(was, reports) {
			comparable = true
			for reason, n := range reports {
				if reason == stage.Accepted.String() {
					point.accepted += float64(n - was[reason])
				} else {
					point.refused += float64(n - was[reason])
				}
			}
		}
	}
	if len(fresh) == 0 {
		return
	}
	switch {
	case !known:
		b.rates, b.counts = history[ratePoint]{merge: mergeRates}, map[string]map[string]uint64{}
	case comparable && point.seconds > 0:
		b.rates.add(point)
	}
	maps.Copy(b.counts, fresh)
	b.sampled, b.totals = now, map[string]uint64{}
	for _, reports := range b.counts {
		for reason, n := range reports {
			b.totals[reason] += n
		}
	}
}

// grown reports whether no counter went back.
func grown(was, now map[string]uint64) bool {
	for reason, n := range was {
		if now[reason] < n {
			return false
		}
	}
	return true
}

// byReason adds up reasons that this version does not know.
func byReason(reports map[string]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for reason, n := range reports {
		out[known(reason)] += n
	}
	return out
}

// other is the name under which every reason that this version does not know is counted.
const other = "other"

func known(reason string) string {
	for _, r := range stage.Reasons() {
		if r.String() == reason {
			return reason
		}
	}
	return other
}
