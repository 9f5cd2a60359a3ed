package dashboard

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/panlearn/panlearn/shuffle/stage"
)

// workless reports whether no stage that is asked has worked for so long that none will: all are silent for unanswered,
// or none has the lease for as long as a lease lasts, and no round was committed meanwhile, which a process that is not
// asked may have mixed.
func (st *state) workless(now time.Time) bool {
	s := &st.stage
	switch {
	case !s.asked || s.idle.IsZero():
		return false
	case s.silence != "" && now.Sub(s.since) >= unanswered:
		return true
	}
	idle := s.idle
	if n := len(st.rounds.points); n > 0 && st.rounds.points[n-1].At.After(idle) {
		idle = st.rounds.points[n-1].At
	}
	return now.Sub(idle) > stage.DefaultLeaseTTL
}

// asked describes which stage processes were asked, and what they answered.
func (st *state) asked() string {
	var out []string
	for _, a := range st.stage.answers {
		name := a.Name
		name = cmp.Or(name, "the stage")
		what := "stands by"
		switch {
		case a.Silence != "":
			what = string(a.Silence)
		case a.Status.Works:
			what = "works"
		}
		out = append(out, name+": "+what)
	}
	return "Asked: " + strings.Join(out, "; ") + "."
}

// noStage returns the verdict if workless holds.
func (st *state) noStage(now time.Time) Verdict {
	s := &st.stage
	waits := "The learner waits."
	if st.announced.round != 0 {
		waits = "The learner waits; the open round gets a new attempt when one works."
	}
	v := Verdict{Level: Wrong, Title: "No shuffle stage works.", Section: sectionKill,
		Detail: fmt.Sprintf("%s None has worked since %s. %s", st.asked(), clock(s.idle, now), waits),
		Do: fmt.Sprintf(
			"Start ingest shuffle --task %s with the identity of this task, or see in the logs of those that stand by why they do not get the lease: "+
				"a broker that is slow, or takes no writes, which learner doctor tells. "+
				"If another process works, name it with --stage-http.", st.task.Name)}
	if s.silence != "" {
		v.Title = fmt.Sprintf("The shuffle stage is silent: %s.", s.silence)
		if len(s.answers) > 1 {
			v.Title = fmt.Sprintf("All %d shuffle stages are silent.", len(s.answers))
		}
		v.Do = fmt.Sprintf(
			"Start ingest shuffle --task %s with the identity of this task, and look at the address of --stage-http.", st.task.Name)
	}
	if strings.Contains(st.task.Trust, "pan") { // totals die with their process
		v.Do += " Under trust " + st.task.Trust + " the " + st.task.Reporter().Many +
			" of the open attempt drop out if its process has died."
	}
	return v
}
