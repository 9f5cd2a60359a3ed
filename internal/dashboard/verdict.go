package dashboard

import (
	"fmt"
	"time"
)

// A Level says how much a verdict matters. It is a class of the style sheet.
type Level string

// The levels, from well to broken.
const (
	Good  Level = "good"
	Info  Level = "info"
	Warn  Level = "warn"
	Wrong Level = "wrong"
)

// A Verdict is the state of a task in plain words. Title, Do and Section change rarely, so that they can be read aloud when
// they do; Detail has the numbers.
type Verdict struct {
	Level   Level
	Word    string // of the level
	Title   string
	Detail  string
	Do      string // what to do; empty: nothing
	Section string // a document in docs/ and its heading
}

var words = map[Level]string{Good: "All is well", Info: "For your information", Warn: "Attention", Wrong: "Something is broken"}

const (
	// quiet is how long nobody may join a round before the page says that it waits.
	quiet = 30 * time.Second
	// unopened is how long a round may stand without an attempt.
	unopened = 30 * time.Second
	// unanswered is how long a stage may not answer: a restart.
	unanswered = 5 * time.Second
	// failing is how many calls of the broker in a row are more than bad luck.
	failing = 3
)

// Sections of the documents in docs/.
const (
	sectionWatching = "metrics.md, “Watching”"
	sectionKill     = "runbook.md, “Kill anything”"
	sectionRecovery = "runbook.md, “Recovery”"
	sectionBudget   = "runbook.md, “The budget is spent”"
	sectionEnding   = "operations.md, “Ending a task”"
	sectionBroker   = "operations.md, “A broker of three servers”"
	sectionAlerts   = "metrics.md, “Alerts”"
)

func (st *state) verdict(task Task, now time.Time) Verdict {
	v := st.judge(task, now)
	v.Word = words[v.Level]
	return v
}

// judge says the first that is true of: it ended, the broker is lost, it has not begun, the stage is lost, a round waits,
// it learns.
func (st *state) judge(task Task, now time.Time) Verdict {
	since := func(at time.Time) string { return fmt.Sprintf("since %s", clock(at, now)) }
	s := &st.stage
	switch {
	case st.stopped != nil:
		return st.ended()
	case !st.brokerLost.IsZero():
		return Verdict{Level: Wrong, Title: "The broker cannot be reached.", Section: sectionKill,
			Detail: fmt.Sprintf("There is no connection %s. Nothing is lost: the learner tries again until it is back.", since(st.brokerLost)),
			Do:     "Start the NATS server, or ask learner doctor what stands between them."}
	case st.trouble != "":
		return Verdict{Level: Warn, Title: "The learner's calls of the broker fail.", Section: sectionBroker, Detail: st.trouble + ".",
			Do: "Ask learner doctor --role learner, with the learner's credentials."}
	case s.asked && s.silence != "" && now.Sub(s.since) >= unanswered:
		do := fmt.Sprintf("Start ingest shuffle --task %s with the identity of this task, and look at the address of --stage-http.", task.Name)
		if task.Trust != "shuffle" {
			do += " Under trust " + task.Trust + " the users of the open attempt drop out."
		}
		return Verdict{Level: Wrong, Title: fmt.Sprintf("The shuffle stage is silent: %s.", s.silence), Section: sectionKill, Do: do,
			Detail: fmt.Sprintf("Silent %s. The learner waits; the open round gets a new attempt when a stage is back.", since(s.since))}
	case !st.resumed:
		return Verdict{Level: Info, Title: "The task has not begun: the learner waits for the shuffle stage's key.", Section: sectionWatching,
			Do: fmt.Sprintf("Start ingest shuffle --task %s.", task.Name)}
	case st.announced.round == 0:
		return Verdict{Level: Info, Title: "The learner compares its state with the broker."}
	case s.asked && s.status.Failures >= failing:
		return Verdict{Level: Warn, Title: "The shuffle stage cannot reach the broker.", Section: sectionAlerts,
			Detail: fmt.Sprintf("%d of its calls failed in a row.", s.status.Failures),
			Do:     "Ask learner doctor --role stage, with the stage's credentials."}
	case !s.here(st.announced.round) && now.Sub(st.announced.at) >= unopened:
		return Verdict{Level: Warn, Title: fmt.Sprintf("No shuffle stage has opened round %d.", st.announced.round), Section: sectionAlerts,
			Detail: fmt.Sprintf("The round stands announced %s.", since(st.announced.at)),
			Do:     "Start ingest shuffle with the identity of this task, or see in its log why it does not open the round."}
	}
	return st.collecting(now)
}

// here reports whether a stage works on a round.
func (s *stageState) here(round uint64) bool {
	if s.asked {
		return !s.status.Works || s.status.Round >= round // one that stands by tells nothing of the one that works
	}
	return s.opened
}

// collecting is the verdict on a round that a stage has or takes.
func (st *state) collecting(now time.Time) Verdict {
	round, s := st.announced.round, st.stage.status
	switch {
	case !st.stage.asked && now.Sub(st.announced.at) >= quiet:
		return Verdict{Level: Info, Title: fmt.Sprintf("Round %d waits for its cohort.", round), Section: sectionWatching,
			Detail: fmt.Sprintf("%s are asked for, %s. How many are there only the stage knows.", people(st.announced.cohort), "since "+clock(st.announced.at, now)),
			Do:     "See that publishers run. With --stage-http URL this page shows how full the round is."}
	case !st.stage.asked || s.Round != round:
		return st.learning()
	}
	fill := fmt.Sprintf("%s of %s users are there.", count(s.Users), count(s.Cohort))
	late := s.Deadline != nil && !now.Before(*s.Deadline)
	switch {
	case late && s.Users < s.Minimum:
		return Verdict{Level: Warn, Title: fmt.Sprintf("Round %d is past its deadline and waits for its minimum.", round), Section: sectionAlerts,
			Detail: fmt.Sprintf("%s %s are the least that may be released; the deadline was %s.", fill, count(s.Minimum), clock(*s.Deadline, now)),
			Do:     "Bring more publishers. Nothing is lost, and nothing is released below the minimum."}
	case now.Sub(st.stage.grew) >= quiet && s.Users < s.Cohort:
		return Verdict{Level: Info, Title: fmt.Sprintf("Round %d waits for users.", round), Section: sectionAlerts,
			Detail: fmt.Sprintf("%s %s Nobody has joined since %s.", fill, enough(s.Users, s.Minimum, s.Deadline, now), clock(st.stage.grew, now)),
			Do:     "See that publishers run, and that their policies allow this task. Who has taken part is not asked again."}
	}
	v := st.learning()
	v.Detail = fmt.Sprintf("Round %s: %s %s", st.roundOf(), fill, enough(s.Users, s.Minimum, s.Deadline, now))
	return v
}

// enough says when less than the cohort will do.
func enough(users, minimum uint64, deadline *time.Time, now time.Time) string {
	switch {
	case deadline == nil:
		return "The round has no deadline: it waits for all of them."
	case users < minimum:
		return fmt.Sprintf("At least %s must come; from %s on they are enough.", count(minimum), clock(*deadline, now))
	}
	return fmt.Sprintf("That is enough at the deadline, %s.", clock(*deadline, now))
}

func (st *state) learning() Verdict {
	v := Verdict{Level: Good, Title: "Learning.", // one title for all rounds, which may be short
		Detail: fmt.Sprintf("Round %s: %s are asked for.", st.roundOf(), people(st.announced.cohort))}
	if st.worse() {
		v.Level, v.Title, v.Section = Warn, "Learning, but users' events are predicted worse of late than over all.", sectionAlerts
		v.Do = "See whether the events changed, or come in an order: learner check tells, ingest publish --shuffle mixes them."
	}
	return v
}

// worse reports whether users' events are predicted worse of late than over all, clearly.
func (st *state) worse() bool { return st.progress.Validation != nil && st.progress.Validation.Worse }

// roundOf is the announced round, and of how many. Void rounds are announced and not planned.
func (st *state) roundOf() string {
	if st.progress.Rounds == 0 {
		return fmt.Sprintf("%d, of a task without end", st.announced.round)
	}
	return fmt.Sprintf("%d of %d", st.announced.round, st.progress.Rounds+st.passed())
}

// passed is how many committed rounds took no step.
func (st *state) passed() uint64 {
	return st.progress.Round - min(st.progress.Round, st.progress.Steps)
}

// promise is what the model reveals at most.
func (st *state) promise() string {
	if st.task.NoiseKnown {
		return "with noise that is known: nothing is protected"
	}
	return fmt.Sprintf("epsilon at most %s%s", upper(st.progress.EpsilonSpent), st.task.Assuming)
}

func (st *state) ended() Verdict {
	p := st.progress
	switch st.stopped.How {
	case Over:
		v := Verdict{Level: Good, Title: "The task has ended.", Section: sectionEnding,
			Detail: fmt.Sprintf("%d steps, %s, %s.", p.Steps, people(p.Users), st.promise()),
			Do:     "Take the model from /v1/snapshot, or with learner snapshot."}
		if p.Rounds > 0 && p.Steps < p.Rounds {
			v.Title = "The task was ended before its last step."
		}
		if st.worse() {
			v.Level, v.Detail = Warn, v.Detail+" At its end users' events were predicted worse than over all."
		}
		return v
	case Refused:
		r := st.stopped.Refused
		if r.Round <= 1 {
			return Verdict{Level: Wrong, Title: "The privacy budget refuses the first round: nothing was announced.", Section: sectionBudget,
				Detail: fmt.Sprintf("The round would cost epsilon %s, and the budget is %g.", upper(r.Total), r.Budget),
				Do:     "Give the task a budget that its plan fits: learner plan says what it costs."}
		}
		return Verdict{Level: Warn, Title: fmt.Sprintf("The privacy budget refused round %d: the task has ended.", r.Round), Section: sectionBudget,
			Detail: fmt.Sprintf("Epsilon %s of %g is spent, and with the round it would be %s. The model stands.", upper(r.Spent), r.Budget, upper(r.Total)),
			Do:     "Take the model from /v1/snapshot, or with learner snapshot. More rounds would be another task, which adds up for who takes part in both."}
	case Interrupted:
		return Verdict{Level: Info, Title: "The learner was stopped.", Section: sectionKill,
			Do: "The same command goes on where it stopped. Nothing is lost."}
	}
	return Verdict{Level: Wrong, Title: "The learner stopped with an error.", Section: sectionRecovery,
		Do: "Its log says which, and what to do."}
}
