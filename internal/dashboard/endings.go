package dashboard

import (
	"fmt"

	"github.com/panlearn/panlearn/internal/wording"
)

// ended returns the verdict after the end.
func (st *state) ended() Verdict {
	p := st.progress
	switch st.stopped.How {
	case Over:
		v := Verdict{Level: good, Title: "The task has ended.", Section: sectionEnding,
			Detail: fmt.Sprintf("%d steps, %s, %s.", p.Steps, counted(p.Users, st.task.Counted()), st.promise()),
			Do:     "Take the model:", Take: true}
		if p.Rounds > 0 && p.Steps < p.Rounds {
			v.Title = "The task was ended before its last step."
		}
		if st.diverges() {
			v.Level, v.Title = warn, "The task has ended, and its model is "+wording.WorseThanConstant+"."
			v.Detail += " " + st.divergence() + wording.FewerOrMore
		} else if st.worse() {
			v.Level, v.Detail = warn, v.Detail+" At its end "+st.task.theirRows()+" were predicted worse than over all."
		}
		return v
	case Refused:
		r := st.stopped.Refused
		if r.Round <= 1 {
			return Verdict{Level: Wrong, Title: "The privacy budget refuses the first round: nothing was announced.",
				Section: sectionBudget,
				Detail:  fmt.Sprintf("The round would cost epsilon %s, and the budget is %g.", upper(r.Total), r.Budget),
				Do:      "Give the task a budget that its plan fits: learner plan says what it costs."}
		}
		return Verdict{Level: warn, Title: fmt.Sprintf("The privacy budget refused round %d: the task has ended.", r.Round),
			Section: sectionBudget,
			Detail: fmt.Sprintf("Epsilon %s of %g is spent, and with the round it would be %s. The model stands.",
				upper(r.Spent), r.Budget, upper(r.Total)),
			Do: "More rounds would be another task, which adds up for who takes part in both. Take the model:", Take: true}
	case Interrupted:
		return Verdict{Level: Info, Title: "The learner was stopped.", Section: sectionKill,
			Do: "The same command goes on where it stopped. Nothing is lost."}
	}
	return Verdict{Level: Wrong, Title: "The learner stopped with an error.", Section: sectionRecovery,
		Do: "Its log says which, and what to do."}
}
