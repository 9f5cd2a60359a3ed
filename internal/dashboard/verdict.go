package dashboard

import (
	"fmt"
	"strings"
	"time"

	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/shuffle/stage"
)

// A Level grades how much a verdict matters. It is a class of the style sheet.
type Level string

// The levels, from well to broken.
const (
	good  Level = "good"
	Info  Level = "info"
	warn  Level = "warn"
	Wrong Level = "wrong"
)

// A Verdict is the state of a task in plain words. Title, Do and Section change rarely, so that they can be read aloud
// when they do; Detail has the numbers.
type Verdict struct {
	Level   Level
	Word    string // of the level
	Title   string
	Detail  string
	Do      string // what to do; empty: nothing
	Take    bool   // links to the model follow Do
	Section string // a document in docs/ and its heading
}

var levelWords = map[Level]string{good: "All is well", Info: "For your information", warn: "Attention",
	Wrong: "Something is broken"}

const (
	// quiet is the time without a new user in a round after which the page shows that the round waits.
	quiet = 30 * time.Second
	// starving is the least time without a new user after which the page warns of too few reports; where rounds are
	// slower by themselves, it waits longer.
	starving = 10 * time.Minute
	// unopened is the time without an attempt at an announced round after which the page warns.
	unopened = 30 * time.Second
	// unanswered is the longest silence of a stage that counts as a restart.
	unanswered = 5 * time.Second
	// failing is the number of failed calls of the broker in a row that is more than bad luck.
	failing = 3
)

// Sections of the documents in docs/.
const (
	sectionWatching = "reference/metrics.md, “Watching”"
	sectionKill     = "how-to/runbook.md, “Kill anything”"
	sectionRecovery = "how-to/runbook.md, “Recovery”"
	sectionBudget   = "how-to/runbook.md, “The budget is spent”"
	sectionEnding   = "how-to/operations.md, “Ending a task”"
	sectionDisk     = "how-to/runbook.md, “A disk is full”"
	sectionHostile  = "how-to/runbook.md, “Hostile devices”"
	sectionAlerts   = "reference/metrics.md, “Alerts”"
	sectionHelper   = "how-to/runbook.md, “The other operator is away”"
	sectionLost     = "how-to/runbook.md, “The broker lost records”"
	sectionClocks   = "how-to/runbook.md, “Clocks”"
	sectionVoids    = "how-to/runbook.md, “Rounds are void one after another”"
	sectionBadModel = "how-to/runbook.md, “A bad model went out”"
)

func (st *state) verdict(now time.Time) Verdict {
	v := st.judge(now)
	v.Word = levelWords[v.Level]
	return v
}

// judge returns the first verdict that is true of these: the task ended, the broker is lost or fails, no stage works,
// the task has not begun, publishers are refused, a clock is off, the helper is away, a round waits, it learns.
func (st *state) judge(now time.Time) Verdict {
	since := func(at time.Time) string { return "since " + clock(at, now) }
	s := &st.stage
	switch {
	case st.stopped != nil:
		return st.ended()
	case !st.brokerLost.IsZero():
		return Verdict{Level: Wrong, Title: "The broker cannot be reached.", Section: sectionKill,
			Detail: fmt.Sprintf("There is no connection %s. Nothing is lost: the learner tries again until it is back.",
				since(st.brokerLost)),
			Do: "Start the NATS server, or ask learner doctor what keeps them apart."}
	case st.trouble != "":
		return brokerFails("the learner", "learner", st.trouble, "It has failed "+since(st.troubled)+".")
	case st.workless(now) && (s.silence != "" || s.status.Trouble == ""):
		return st.noStage(now)
	case s.asked && s.silence == "" && (s.status.Failures >= failing || s.status.Trouble != ""):
		return st.stageFails(now)
	case !st.resumed:
		return Verdict{Level: Info, Title: "The task has not begun: the learner waits for the shuffle stage's key.",
			Section: sectionWatching,
			Do:      fmt.Sprintf("Start ingest shuffle --task %s.", st.task.Name)}
	case st.announced.round == 0:
		return Verdict{Level: Info, Title: "The learner compares its state with the broker."}
	case s.asked && s.silence == "" && full(s.status.Queue):
		return Verdict{Level: warn, Title: "Publishers are refused: the queue of reports is full.", Section: sectionHostile,
			Detail: fmt.Sprintf(
				"It holds %s, %s of at most %s. Nothing that counts is lost: devices try again, and the stage empties it.",
				countOf(s.status.Queue.Messages, "report"), size(s.status.Queue.Bytes), size(s.status.Queue.MaxBytes)),
			Do: "If it stays full, see in the server's /connz who sends that much, and take the permission away."}
	case st.progress.VoidsInARow > service.CalmVoids && st.announced.round <= st.progress.Round:
		return Verdict{Level: warn, Title: "Rounds are void one after another: the learner waits before the next one.",
			Section: sectionVoids,
			Detail: fmt.Sprintf(
				"The last %d were void. Each has used up a cohort, which stays charged, so the wait grows with each, to an hour.",
				st.progress.VoidsInARow),
			Do: "See in the shuffle stage's log what follows a claim."}
	case !s.here(st.announced.round) && now.Sub(st.announced.at) >= unopened:
		return Verdict{Level: warn, Title: fmt.Sprintf("No shuffle stage has opened round %d.", st.announced.round),
			Section: sectionAlerts,
			Detail:  fmt.Sprintf("The round has waited %s.", since(st.announced.at)),
			Do:      "Start ingest shuffle with the identity of this task, or see in its log why it does not open the round."}
	case st.ahead.Abs() > clockOff:
		return clockVerdict("learner", "deadlines on this page are", st.ahead)
	case s.asked && s.silence == "" && s.status.Ahead().Abs() > clockOff:
		return clockVerdict("shuffle stage", "a round's deadline is", s.status.Ahead())
	case s.asked && s.silence == "" && s.status.Works && s.status.HelperAway != nil:
		return Verdict{Level: warn, Title: "The other operator is away: the helper does not answer the stage.",
			Section: sectionHelper,
			Detail: fmt.Sprintf("It has not %s. The round waits, and nothing is lost.",
				since(*s.status.HelperAway)),
			Do: "Its operator starts ingest shuffle --role helper again with the same --state, or reads in its log why it ended; learner doctor --role helper, with its credentials, says whether the broker lets it work."}
	case s.asked && !s.status.Works && s.silence == "":
		return Verdict{Level: Info, Title: "No shuffle stage works at the moment.",
			Detail: fmt.Sprintf(
				"%s One that stands by takes over when the lease of the other has run out: %v, unless --lease says otherwise.",
				st.asked(), stage.DefaultLeaseTTL)}
	}
	return st.collecting(now)
}

// clockOff is the largest error of a clock that the page does not mention.
const clockOff = 5 * time.Second

// clockVerdict returns the verdict if the clock of a role is off, so that its times blame nobody.
func clockVerdict(whose, wrong string, ahead time.Duration) Verdict {
	way := "ahead of"
	if ahead < 0 {
		way = "behind"
	}
	return Verdict{Level: warn, Title: fmt.Sprintf("The %s's clock is off.", whose), Section: sectionClocks,
		Detail: fmt.Sprintf("It is %v %s the broker's, at least: %s wrong by as much. Nothing is lost.",
			ahead.Abs().Round(time.Second), way, wrong),
		Do: "Set it, and the broker's, by NTP."}
}

// diskCauses lists the texts that show a full disk in the cause of a failing call, and how sure that is.
var diskCauses = []struct{ in, title string }{
	{"no space left on device", "The broker's disk is full."},
	{"its disk is full or broken", "The broker's disk is full or broken."},
	{"insufficient storage", "The broker has no room left."},
	{"answers reads and not writes", "The broker answers reads and not writes: its disk may be full."},
	{"slow, or its disk is full", "The broker does not answer: it is slow, or its disk is full."},
}

// brokerFails returns the verdict if calls of the broker fail for a role.
func brokerFails(whom, role, cause, detail string) Verdict {
	first := cause
	for _, end := range []string{"; ", ". ", "? "} {
		first, _, _ = strings.Cut(first, end)
	}
	v := Verdict{Level: warn, Title: fmt.Sprintf("The broker fails %s.", whom), Section: sectionAlerts, Detail: detail,
		Do: fmt.Sprintf("Ask learner doctor --role %s, with its credentials.", role)}
	if cause != "" {
		v.Title = fmt.Sprintf("The broker fails %s: %s.", whom, strings.TrimRight(short(first), ".?"))
		v.Detail = fmt.Sprintf("The cause: %s. %s", strings.TrimSuffix(short(cause), "."), detail)
	}
	if strings.Contains(cause, "no stream answers") {
		v.Title, v.Section = fmt.Sprintf("A stream of the task does not answer %s.", whom), sectionLost
		v.Do = "Ask learner doctor, with the administrator's credentials: it says which stream is gone, and whether learner provision makes it again."
	}
	if strings.HasPrefix(cause, stage.OwnDisk) {
		v.Level, v.Title, v.Section = Wrong, "The stage cannot write to its own --state.", sectionDisk
		v.Do = "Make room on the disk of the stage's --state, or give it back. The broker is well, and nothing has to be restarted."
		return v
	}
	for _, c := range diskCauses {
		if strings.Contains(cause, c.in) {
			v.Level, v.Title, v.Section = Wrong, c.title, sectionDisk
			v.Detail = fmt.Sprintf("It fails %s, with the cause: %s. %s Nothing that is committed is lost.", whom,
				strings.TrimSuffix(short(cause), "."), detail)
			v.Do = "Make room on the broker's disk, then restart nats-server: it refuses writes until then, room or not."
			break
		}
	}
	return v
}

// stageFails returns the verdict if calls of the broker fail for a stage that replies, also if the stage cannot get the
// lease because of that.
func (st *state) stageFails(now time.Time) Verdict {
	s, detail := &st.stage, "It is tried again."
	if s.status.Failures > 0 {
		detail = fmt.Sprintf("%s of it failed in a row.", calls(s.status.Failures))
	}
	if !st.workless(now) {
		return brokerFails("the shuffle stage", "stage", s.status.Trouble, detail)
	}
	v := brokerFails("the shuffle stage", "stage", s.status.Trouble, fmt.Sprintf("%s No stage has worked since %s.",
		detail, clock(s.idle, now)))
	v.Level = Wrong
	return v
}

// here reports whether a stage is known to work on a round; workless reports whether one works at all.
func (s *stageState) here(round uint64) bool {
	if s.asked {
		return !s.status.Works || s.status.Round >= round
	}
	return s.opened
}

// collecting returns the verdict on a round that a stage has or takes.
func (st *state) collecting(now time.Time) Verdict {
	round, s := st.announced.round, st.stage.status
	switch {
	case !st.stage.asked && now.Sub(st.announced.at) >= quiet:
		return Verdict{Level: Info, Title: fmt.Sprintf("Round %d waits for its cohort.", round), Section: sectionWatching,
			Detail: fmt.Sprintf("%s are asked for, %s. How many are there only the stage knows.", counted(st.announced.cohort,
				wording.Report), "since "+clock(st.announced.at, now)),
			Do: "See that publishers run. With --stage-http URL this page shows how full the round is."}
	case !st.stage.asked || s.Round != round:
		return st.learning()
	}
	fill := fmt.Sprintf("%s of %s reports are there.", count(s.Users), count(s.Cohort))
	late := s.Deadline != nil && !now.Before(*s.Deadline)
	switch {
	case late && s.Users < s.Minimum:
		return Verdict{Level: warn, Title: fmt.Sprintf("Round %d is past its deadline and waits for its minimum.", round),
			Section: sectionAlerts,
			Detail: fmt.Sprintf("%s %s are the least that may be released; the deadline was %s.", fill, count(s.Minimum),
				clock(*s.Deadline, now)),
			Do: "Bring more publishers, and see in their logs that the broker takes their reports. Nothing is lost, and nothing is released below the minimum."}
	case now.Sub(st.stage.grew) >= quiet && s.Users < s.Cohort && s.Cohort-s.Users <= st.task.Guests:
		return Verdict{Level: Info, Title: fmt.Sprintf("Round %d keeps a place for you.", round), Section: sectionWatching,
			Detail: fill + " " + enough(s.Users, s.Minimum, s.Deadline, now),
			Do:     "Take part from this browser: the link is below the numbers."}
	case now.Sub(st.stage.grew) >= max(starving, st.laps.slow()) && s.Users < s.Cohort:
		return Verdict{Level: warn, Title: fmt.Sprintf("Too few reports come: round %d has %s of %s.", round, count(s.Users),
			count(s.Cohort)), Section: sectionAlerts,
			Detail: fmt.Sprintf("%s Nobody has joined since %s. %s", enough(s.Users, s.Minimum, s.Deadline, now),
				clock(st.stage.grew, now), st.shortOf()),
			Do: st.task.bring() +
				" See in the publishers' logs that the broker takes their reports. learner finish ends the task with the model that it has."}
	case now.Sub(st.stage.grew) >= quiet && s.Users < s.Cohort:
		return Verdict{Level: Info, Title: fmt.Sprintf("Round %d waits for reports.", round), Section: sectionAlerts,
			Detail: fmt.Sprintf("%s %s Nobody has joined since %s.", fill, enough(s.Users, s.Minimum, s.Deadline, now),
				clock(st.stage.grew, now)),
			Do: "See that publishers run, that their policies allow this task, and what their logs say: a broker whose disk is full may refuse only reports, and then nobody else sees it." + st.task.once()}
	}
	v := st.learning()
	v.Detail = fmt.Sprintf("Round %s: %s %s", st.roundOf(), fill, enough(s.Users, s.Minimum, s.Deadline, now))
	return v
}

// enough describes when fewer users than the cohort are enough.
func enough(users, minimum uint64, deadline *time.Time, now time.Time) string {
	switch {
	case deadline == nil:
		return "The round has no deadline: it waits for all of them."
	case users < minimum:
		return fmt.Sprintf("At least %s must come; from %s on they are enough.", count(minimum), clock(*deadline, now))
	}
	return fmt.Sprintf("That is enough at the deadline, %s.", clock(*deadline, now))
}

// shortOf describes how many users the rest of the plan needs, and why they may not be there; empty for a task
// without end.
func (st *state) shortOf() string {
	p := st.progress
	if p.Rounds == 0 || st.task.Needs == nil {
		return ""
	}
	out := fmt.Sprintf("The rounds that are left want %s of %s planned.",
		counted(st.task.Needs(p.Steps), st.task.Counted()), count(st.task.Users))
	if n := st.passed(); n > 0 && !st.task.Interactive {
		out += fmt.Sprintf(" The %s of %s are spent, too: the plan has no others in their place.", st.task.Counted().Many,
			countOf(n, "void round"))
	}
	return out
}

func (st *state) learning() Verdict {
	v := Verdict{Level: good, Title: "Learning.", // one title for all rounds, which may be short
		Detail: fmt.Sprintf("Round %s: %s are asked for.", st.roundOf(), counted(st.announced.cohort, wording.Report))}
	switch t, b := st.progress.Tracking, st.progress.Rollback; {
	case b != nil && b.After == st.progress.Round:
		v.Level, v.Title, v.Section = warn, "Learning: an earlier model was released again.", sectionBadModel
		v.Do = fmt.Sprintf(
			"Nothing has to be done. After round %d the model of round %d stands again, and the round after this one starts from it. This one was asked at "+
				"the model that was withdrawn: it is counted, and teaches nothing. learner rollback takes it back.", b.After, b.To)
	case t != nil && t.Alarm:
		v.Level, v.Title, v.Section = warn, "Learning: the stream has changed, and the model follows.", sectionAlerts
		v.Detail += fmt.Sprintf(" The last round is %s deviations farther from the model than expected; %s is the alarm.",
			number(t.Surprise), number(method.Alarm))
		v.Do = "See what changed where the " + st.task.Row().Many + " come from; nothing has to be set."
	case st.diverges():
		v.Level, v.Title, v.Section = warn, "Learning, but the model is "+wording.WorseThanConstant+".", sectionAlerts
		v.Do = st.divergence() + wording.FewerOrMore + " This task goes on as planned; learner finish ends it."
	case st.worse():
		v.Level, v.Title, v.Section = warn, "Learning, but "+st.task.theirRows()+
			" are predicted worse recently than over all.", sectionAlerts
		v.Do = "See whether the " + st.task.Row().Many +
			" changed, or come in an order: learner check tells, ingest publish --shuffle mixes them."
	}
	return v
}

// diverges reports whether the last round and the recent ones are predicted worse than by the best constant, surely.
func (st *state) diverges() bool {
	return st.progress.Validation != nil && st.progress.Validation.Diverges
}

// divergence describes how much worse than the best constant the model is.
func (st *state) divergence() string {
	v, text := st.progress.Validation, ""
	if b := st.progress.Baseline; b != nil && b.Loss != nil {
		text = fmt.Sprintf("The recent loss is %s, that of the best constant about %s. ", number(v.Loss.Recent.Value),
			number(*b.Loss))
	}
	if v.LossAtLeast != nil {
		text += fmt.Sprintf("It is "+wording.Uncut+". ", number(*v.LossAtLeast))
	} else if v.AtBound {
		text += "It is " + wording.AtBound + ". "
	}
	return text
}

// worse reports whether recent events of those who report are predicted clearly worse than all.
func (st *state) worse() bool { return st.progress.Validation != nil && st.progress.Validation.Worse }

// roundOf describes the announced round, and of how many it is. Void rounds are announced and not planned.
func (st *state) roundOf() string {
	if st.progress.Rounds == 0 {
		return fmt.Sprintf("%d, of a task without end", st.announced.round)
	}
	return fmt.Sprintf("%d of %d", st.announced.round, st.progress.Rounds+st.passed())
}

// passed returns the number of committed rounds that took no step.
func (st *state) passed() uint64 {
	return st.progress.Round - min(st.progress.Round, st.progress.Steps)
}

// promise describes the upper bound on what the model reveals.
func (st *state) promise() string {
	if st.task.NoiseKnown {
		return "with noise that is known: nothing is protected"
	}
	return fmt.Sprintf("epsilon at most %s%s", upper(st.progress.EpsilonSpent), st.task.Assuming)
}
