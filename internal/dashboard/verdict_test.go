package dashboard

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/shuffle/stage"
)

// The errors of natsjs for a broker that cannot write; TestPageKnowsTheBrokersCauses (internal/run/runlearner) has
// its own words.
const (
	fullDisk  = "the broker refuses writes: its disk is full or broken; free space there, then restart nats-server, which refuses until then (write 1.blk: no space left on device)"
	unwritten = "the broker answers reads and not writes: is its disk full? Free space there, then restart nats-server, which refuses until then"
)

// situations maps states of a task to the verdict that the top of the page must show.
var situations = map[string]struct {
	play    func(*scene)
	level   Level
	says    []string
	section string
}{
	"before the stage's key": {func(w *scene) { w.Broker(true) }, Info, []string{"has not begun",
		"ingest shuffle --task income"}, sectionWatching},
	"between loading and announcing": {func(w *scene) { w.Resumed(w.progress()) }, Info,
		[]string{"compares its state with the broker"}, ""},
	"learning": {func(w *scene) {
		w.learn(6)
		w.pass(time.Second)
		w.report(312)
	}, good, []string{
		"Learning.", "Round 7 of 40: 312 of 500 reports are there.",
		"At least 450 must come; from 13:00:30 UTC on they are enough."}, ""},
	"worse recently": {func(w *scene) {
		w.bad = true
		w.learn(6)
		w.report(312)
	}, warn, []string{"predicted worse recently", "312 of 500", "ingest publish --shuffle"}, sectionAlerts},
	"worse than a constant": {func(w *scene) {
		w.diverges = true
		w.learn(6)
		w.report(312)
	}, warn, []string{
		"worse than the best constant", "312 of 500", "as bad as the scale shows", "features.fourier.gamma",
		"schedule.interactive=true"}, sectionAlerts},
	"worse than a constant behind the bound": {func(w *scene) {
		w.diverges, w.hidden = true, true
		w.learn(6)
		w.report(312)
	}, warn, []string{"worse than the best constant", "at least 1.25 where single losses are not cut"}, sectionAlerts},
	"worse than a constant at the end": {func(w *scene) {
		w.diverges = true
		w.learn(40)
		w.Stop(Stop{How: Over})
	}, warn, []string{
		"The task has ended, and its model is worse than the best constant", "a larger epsilon"}, sectionEnding},
	"worse at the end": {func(w *scene) {
		w.bad = true
		w.learn(40)
		w.Stop(Stop{How: Over})
	}, warn, []string{"The task has ended", "predicted worse than over all"}, sectionEnding},
	"enough at the deadline": {func(w *scene) {
		w.learn(0)
		w.report(460)
	}, good, []string{"460 of 500", "enough at the deadline, 13:00:00 UTC"}, ""},
	"no deadline": {func(w *scene) {
		w.learn(0)
		w.stage.Deadline = nil
		w.report(3)
	}, good, []string{"3 of 500", "no deadline"}, ""},
	"nobody joins": {func(w *scene) {
		w.learn(6)
		w.report(312)
		w.pass(quiet)
	}, Info, []string{
		"Round 7 waits for reports", "312 of 500", "450", "Nobody has joined since 12:00:30 UTC", "publishers run"},
		sectionAlerts},
	"a place is kept for a person": {func(w *scene) {
		w.task.Guests, w.task.Invitation = 1, "/device"
		w.learn(6)
		w.report(499)
		w.pass(starving)
	}, Info, []string{"Round 7 keeps a place for you", "499 of 500", "Take part from this browser"}, sectionWatching},
	"the helper is away": {func(w *scene) {
		w.learn(6)
		at := w.now()
		w.stage.HelperAway = &at
		w.report(0)
		w.pass(time.Hour)
		w.report(0)
	}, warn, []string{"The other operator is away", "since 12:00:30 UTC", "nothing is lost", "--role helper"},
		sectionHelper},
	"past the deadline under the minimum": {func(w *scene) {
		w.learn(6)
		w.report(312)
		w.pass(time.Hour)
		w.report(1)
	}, warn, []string{
		"past its deadline", "313 of 500", "450 are the least", "the deadline was 13:00:30 UTC", "Nothing is lost"},
		sectionAlerts},
	"past the deadline, by a learner's clock that is ahead": {func(w *scene) {
		w.learn(6)
		w.report(312)
		w.pass(time.Hour)
		w.report(1)
		w.Clock(24 * time.Hour)
	}, warn, []string{"The learner's clock is off", "24h0m0s ahead of the broker's", "NTP"}, sectionClocks},
	"past the deadline, by a stage's clock that is behind": {func(w *scene) {
		w.learn(6)
		w.stage.ClockAhead = -86400
		w.report(312)
		w.pass(time.Hour)
		w.report(1)
	}, warn, []string{"The shuffle stage's clock is off", "24h0m0s behind the broker's", "NTP"}, sectionClocks},
	"a clock that is some seconds off": {func(w *scene) {
		w.learn(0)
		w.stage.ClockAhead = 2
		w.report(460)
		w.Clock(-2 * time.Second)
	}, good, []string{"460 of 500"}, ""},
	"the stage is silent": {func(w *scene) {
		w.learn(6)
		w.StageSilent(noAnswer)
		w.pass(unanswered)
		w.StageSilent(noAnswer)
	}, Wrong, []string{
		"shuffle stage is silent: it does not answer", "since 12:00:30 UTC", "Start ingest shuffle --task income"},
		sectionKill},
	"the stage is silent for a moment": {func(w *scene) {
		w.learn(6)
		w.StageSilent(noAnswer)
	}, good, []string{"Learning."}, ""},
	"the stage is another task's": {func(w *scene) {
		w.StageSilent(anotherTask)
		w.pass(unanswered)
	}, Wrong, []string{"it works for another task", "--stage-http"}, sectionKill},
	"the stage is back": {func(w *scene) {
		w.learn(6)
		w.StageSilent(noAnswer)
		w.pass(unanswered)
		w.Stage(w.stage)
	}, good, []string{"Learning."}, ""},
	"the stage does not open the round": {func(w *scene) {
		w.learn(6)
		w.stage.Round = 0
		w.Stage(w.stage)
		w.pass(unopened)
	}, warn, []string{"No shuffle stage has opened round 7"}, sectionAlerts},
	"none of the stages works": {func(w *scene) {
		w.learn(6)
		ask := func() {
			w.stages(Answer{Name: "a:9091", Silence: noAnswer}, Answer{Name: "b:9091", Status: obs.StageStatus{Task: "income"}})
		}
		ask()
		w.pass(stage.DefaultLeaseTTL + time.Second)
		ask()
	}, Wrong, []string{
		"No shuffle stage works.", "Asked: a:9091: it does not answer; b:9091: stands by.",
		"None has worked since 12:00:30 UTC", "--stage-http"}, sectionKill},
	"no stage answers before the task has begun": {func(w *scene) {
		w.stages(Answer{Name: "a:9091", Silence: noAnswer})
		w.pass(unanswered)
	}, Wrong, []string{
		"The shuffle stage is silent", "None has worked since 12:00:00 UTC. The learner waits."}, sectionKill},
	"the stages change hands": {func(w *scene) {
		w.learn(6)
		w.stages(Answer{Name: "a:9091", Silence: noAnswer}, Answer{Name: "b:9091", Status: obs.StageStatus{Task: "income"}})
		w.pass(stage.DefaultLeaseTTL)
	}, Info, []string{"No shuffle stage works at the moment.", "b:9091: stands by", "15s"}, ""},
	"a stage that is not asked works": {func(w *scene) {
		w.learn(6)
		w.Stage(obs.StageStatus{Task: "income"})
		w.pass(time.Hour)
		w.commit(time.Hour)
		w.Announced(8, 500)
	}, Info, []string{"No shuffle stage works at the moment."}, ""},
	"all stages are silent": {func(w *scene) {
		w.learn(6)
		w.stages(Answer{Name: "a:9091", Silence: noAnswer}, Answer{Name: "b:9091", Silence: anotherTask})
		w.pass(unanswered)
	}, Wrong, []string{
		"All 2 shuffle stages are silent.", "a:9091: it does not answer; b:9091: it works for another task"}, sectionKill},
	"the stage cannot reach the broker": {func(w *scene) {
		w.learn(6)
		w.stage.Failures, w.stage.Trouble = failing, "no answer\nwithin 2s"
		w.Stage(w.stage)
	}, warn, []string{
		"The broker fails the shuffle stage: no answer within 2s.", "3 calls of it failed in a row", "doctor --role stage"},
		sectionAlerts},
	"the broker's disk is full, as the learner has it": {func(w *scene) {
		w.learn(6)
		w.Trouble(unwritten)
		w.pass(time.Minute)
		w.Trouble(fullDisk)
	}, Wrong, []string{
		"The broker's disk is full.",
		"It fails the learner, with the cause: the broker refuses writes: its disk is full or broken",
		"no space left on device", "since 12:00:30 UTC",
		"Make room", "restart nats-server"}, sectionDisk},
	"the stage's own disk is full": {func(w *scene) {
		w.learn(6)
		w.stage.Failures, w.stage.Trouble = 1, stage.OwnDisk+": mark round 7 before it is claimed: no space left on device"
		w.Stage(w.stage)
	}, Wrong, []string{
		"The stage cannot write to its own --state.", "Make room on the disk of the stage's --state", "The broker is well"},
		sectionDisk},
	"the broker's disk may be full, as the stage has it": {func(w *scene) {
		w.learn(6)
		w.stage.Failures, w.stage.Trouble = 1, unwritten
		w.Stage(w.stage)
	}, Wrong, []string{
		"The broker answers reads and not writes: its disk may be full.", "It fails the shuffle stage"}, sectionDisk},
	"the broker's disk is full for longer than a lease, and all stand by": {func(w *scene) {
		w.learn(6)
		ask := func() {
			w.stages(Answer{Name: "a:9091", Silence: noAnswer}, Answer{Name: "b:9091", Status: obs.StageStatus{Task: "income",
				Trouble: unwritten}})
		}
		ask()
		w.pass(stage.DefaultLeaseTTL + time.Second)
		ask()
	}, Wrong, []string{
		"The broker answers reads and not writes: its disk may be full.",
		"It is tried again. No stage has worked since 12:00:30 UTC.", "restart nats-server"}, sectionDisk},
	"no stage gets the lease, for a cause that is none of a disk": {func(w *scene) {
		w.learn(6)
		ask := func() {
			w.stages(Answer{Name: "b:9091", Status: obs.StageStatus{Task: "income", Trouble: "no answer within 2s"}})
		}
		ask()
		w.pass(stage.DefaultLeaseTTL + time.Second)
		ask()
	}, Wrong, []string{
		"The broker fails the shuffle stage: no answer within 2s.", "No stage has worked since", "doctor --role stage"},
		sectionAlerts},
	"a stream is missing": {func(w *scene) {
		w.learn(6)
		w.Trouble(
			"no stream answers: is that the task's name? Where they were there, nats-server has disabled JetStream: is its disk full?")
	}, warn, []string{
		"A stream of the task does not answer the learner.", "The cause: no stream answers: is that the task's name?",
		"with the administrator's credentials"}, sectionLost},
	"the broker fails the learner": {func(w *scene) {
		w.learn(6)
		w.Trouble("the stream ROUNDS is missing.")
	}, warn, []string{
		"The broker fails the learner: the stream ROUNDS is missing.", "doctor --role learner"}, sectionAlerts},
	"an earlier model was released again": {func(w *scene) {
		w.learn(6)
		now, _ := w.look()
		at := now.progress
		at.Kept = &service.Moment{Round: 6}
		at.Rollback = &service.Rollback{To: 3, After: 6}
		w.Resumed(at)
	}, warn, []string{
		"Learning: an earlier model was released again.", "After round 6 the model of round 3 stands again",
		"teaches nothing", "learner rollback takes it back"}, sectionBadModel},
	"the broker works again": {func(w *scene) {
		w.learn(6)
		w.Trouble("the broker's disk is full")
		w.Trouble("")
	}, good, []string{"Learning."}, ""},
	"publishers are refused": {func(w *scene) {
		w.learn(6)
		w.stage.Queue = obs.Queue{Messages: 412096, Bytes: 1020 << 20, MaxBytes: 1 << 30}
		w.report(312)
	}, warn, []string{
		"Publishers are refused: the queue of reports is full.", "412,096 reports, 1,020 MiB of at most 1 GiB",
		"devices try again", "/connz"}, sectionHostile},
	"the queue is not full": {func(w *scene) {
		w.learn(6)
		w.stage.Queue = obs.Queue{Messages: 4, Bytes: 900 << 20, MaxBytes: 1 << 30}
		w.report(312)
	}, good, []string{"Learning."}, ""},
	"too few reports": {func(w *scene) {
		w.learn(6)
		p := w.progress()
		p.Round++
		w.Applied(service.Applied{Progress: p, Attempt: 1, Void: true})
		w.report(312)
		w.pass(starving)
	}, warn, []string{
		"Too few reports come: round 7 has 312 of 500.", "Nobody has joined since 12:00:30 UTC",
		"want 17,000 users of 20,000 planned", "The users of 1 void round are spent, too",
		"learner finish"}, sectionAlerts},
	"void rounds in a row": {func(w *scene) {
		w.learn(6)
		p := w.progress()
		p.Round, p.VoidsInARow = p.Round+3, service.CalmVoids+1
		w.Applied(service.Applied{Progress: p, Attempt: 1, Void: true})
		w.pass(unopened)
	}, warn, []string{
		"Rounds are void one after another: the learner waits", "The last 3 were void", "stage's log"}, sectionVoids},
	"no stage, as the broker has it": {func(w *scene) {
		w.Resumed(w.progress())
		w.Announced(1, 500)
		w.pass(unopened)
	}, warn, []string{"No shuffle stage has opened round 1", "since 12:00:00 UTC"}, sectionAlerts},
	"an attempt, as the broker has it": {func(w *scene) {
		w.Resumed(w.progress())
		w.Announced(1, 500)
		w.Opened(1, 2)
		w.pass(quiet)
	}, Info, []string{"Round 1 waits for its cohort", "500 reports are asked for", "--stage-http"}, sectionWatching},
	"an attempt at an older round": {func(w *scene) {
		w.Resumed(w.progress())
		w.Announced(2, 500)
		w.Opened(1, 1)
		w.pass(unopened)
	}, warn, []string{"No shuffle stage has opened round 2"}, sectionAlerts},
	"the broker is lost": {func(w *scene) {
		w.learn(6)
		w.Broker(false)
		w.StageSilent(noAnswer)
		w.pass(time.Hour)
		w.Broker(false)
	}, Wrong, []string{
		"broker cannot be reached", "since 12:00:30 UTC", "Nothing is lost", "learner doctor"}, sectionKill},
	"the broker is back": {func(w *scene) {
		w.learn(6)
		w.Broker(false)
		w.Broker(true)
	}, good, []string{"Learning."}, ""},
	"the task is over": {func(w *scene) {
		w.learn(40)
		w.Stop(Stop{How: Over})
		w.Broker(false)
	}, good, []string{"The task has ended.", "40 steps, 20,000 users, epsilon at most 0.995"}, sectionEnding},
	"the task was ended": {func(w *scene) {
		w.learn(6)
		w.Stop(Stop{How: Over})
	}, good, []string{"ended before its last step", "6 steps"}, sectionEnding},
	"the budget refuses a round": {func(w *scene) {
		w.learn(6)
		w.Stop(Stop{How: Refused, Refused: Refusal{Round: 7, Spent: 0.99431, Total: 1.20001, Budget: 1}})
		w.Stop(Stop{How: Interrupted}) // the first one is kept
	}, warn, []string{
		"budget refused round 7: the task has ended", "Epsilon 0.995 of 1 is spent", "it would be 1.21", "The model stands"},
		sectionBudget},
	"the budget refuses the first round": {func(w *scene) {
		w.Stop(Stop{How: Refused, Refused: Refusal{Round: 1, Total: 1.20001, Budget: 1}})
	}, Wrong, []string{
		"refuses the first round: nothing was announced", "epsilon 1.21, and the budget is 1", "learner plan"},
		sectionBudget},
	"it was stopped": {func(w *scene) {
		w.learn(6)
		w.Stop(Stop{How: Interrupted})
	}, Info, []string{"was stopped", "goes on where it stopped"}, sectionKill},
	"it failed": {func(w *scene) {
		w.learn(6)
		w.Stop(Stop{How: Failed})
	}, Wrong, []string{"stopped with an error", "log"}, sectionRecovery},
}

// TestVerdicts: every situation is a plain sentence at the top of the page, with what to do and where to read on.
func TestVerdicts(t *testing.T) {
	for name, s := range situations {
		t.Run(name, func(t *testing.T) {
			w := newScene()
			s.play(w)
			state, now := w.look()
			if v := state.verdict(now); v.Level != s.level || v.Section != s.section || v.Word == "" ||
				(v.Do == "") != (v.Section == "") {
				t.Errorf("%+v, want level %s and section %q", v, s.level, s.section)
			}
			d := w.document(t)
			if silent := state.counts != nil && state.stage.silence != ""; silent != strings.Contains(text(d.byID("tiles")),
				"the stage is silent") {
				t.Errorf("a stage that is silent: %t; the tiles say %q", silent, text(d.byID("tiles")))
			}
			got := text(d.byID("verdict")) + " " + text(d.byID("detail"))
			for _, want := range append(s.says, levelWords[s.level]+":", s.section) {
				if !strings.Contains(got, want) {
					t.Errorf("the page says %q, want %q", got, want)
				}
			}
		})
	}
}

// TestKeptModelsAreShown: the page of a task without an end names the newest model that is kept, and the last rollback.
func TestKeptModelsAreShown(t *testing.T) {
	w := newScene()
	w.learn(6)
	now, _ := w.look()
	at := now.progress
	at.Rounds, at.Kept, at.Rollback = 0, &service.Moment{Round: 5}, &service.Rollback{To: 2, After: 4}
	w.Resumed(at)
	if got, want := text(
		w.document(t).byID("tiles")),
		"the model of round 5 is kept; rolled back after round 4 to the model of round 2"; !strings.Contains(got, want) {
		t.Errorf("the tiles say %q, want %q", got, want)
	}
}

// TestSectionsExist: the page sends its readers to headings of the documents.
func TestSectionsExist(t *testing.T) {
	for name, s := range situations {
		if s.section == "" {
			continue
		}
		page, heading, _ := strings.Cut(strings.TrimSuffix(s.section, "”"), ", “")
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^#+ ` + regexp.QuoteMeta(heading) + `$`).Match(text) {
			t.Errorf("%s: docs/%s has no section %q", name, page, heading)
		}
	}
}

// TestPanUsersDropOut checks that, with floors, a dead stage costs its users, and that the page shows this.
func TestPanUsersDropOut(t *testing.T) {
	w := newScene()
	w.task.Trust = "pan"
	w.Resumed(service.Progress{})
	w.StageSilent(noAnswer)
	w.pass(unanswered)
	w.document(t).says("verdict", "Under trust pan the users of the open attempt drop out if its process has died.")
}
