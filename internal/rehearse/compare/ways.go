package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream/manifest"
)

// place is the trust of a line in which one holder has all rows.
const place = "one place"

// trusts are from the least trust to the most. A line's rank is its position here.
var trusts = []string{accounting.Local.String(), accounting.Split.String(), accounting.ShufflePan.String(),
	accounting.Pan.String(), accounting.Shuffle.String(), place}

// A way is one way to run a task, before a method is chosen.
type way struct {
	trust  string
	many   bool // passes
	events bool // protect single events, where the task protects people
	sets   []string
}

// ways of a task, in the order of the table.
func ways(base *task.Spec) (out []way) {
	for _, trust := range trusts {
		if base.Silo != nil && base.Silo.Count == 1 && trust != place {
			continue // there are no others to trust or not to
		}
		for _, many := range []bool{false, true} {
			w := way{trust: trust, many: many}
			if trust != place {
				w.set(base.Privacy.Trust.String() != trust, "privacy.trust="+trust)
			} else {
				w.gather(base)
			}
			w.set(base.Schedule.Interactive != many, fmt.Sprintf("schedule.interactive=%t", many))
			out = append(out, w)
			if trust == base.Privacy.Trust.String() && base.Privacy.ByUser() {
				w.events, w.sets = true, slices.Clone(w.sets)
				out = append(out, w)
			}
		}
	}
	return out
}

func (w *way) set(differs bool, set string) {
	if differs {
		w.sets = append(w.sets, set)
	}
}

// gather changes the way to one holder of all units.
func (w *way) gather(base *task.Spec) {
	w.set(base.Privacy.Trust != accounting.Local, "privacy.trust="+accounting.Local.String())
	if base.Silo == nil {
		w.sets = append(w.sets, fmt.Sprintf("silo={count: 1, units: %d}", base.Schedule.Users))
		return
	}
	if base.Silo.Count > 1 {
		w.sets = append(w.sets, "silo.count=1", fmt.Sprintf("silo.units=%d", base.Silo.Count*base.Silo.Units),
			"silo.reports=1")
	}
}

// with adds the method to the overrides: one of schedule.Names, or schedule.Practical.
func (w way) with(base *task.Spec, method string) []string {
	plan, algorithm := schedule.Proved, method
	if method == schedule.Practical {
		plan, algorithm = schedule.Practical, schedule.Auto
	}
	out := way{sets: append([]string{}, w.sets...)} // not nil: nil means protecting events
	out.set(base.Schedule.Plan != plan, "schedule.plan="+plan)
	out.set(base.Schedule.Algorithm != algorithm, "schedule.algorithm="+algorithm)
	return out.sets
}

// resets lists keys that a task sets for its own way and another way may refuse, with the values that leave
// them to the planner.
var resets = map[string]string{"privacy.honest_fraction": "1", "privacy.coin": "fair", "privacy.profile": "numeric",
	"privacy.seal": "hpke", "privacy.suite": "mlkem768x25519", "privacy.operators": "{}", "schedule.cohort": "0",
	"schedule.first_cohort": "0", "schedule.minimum_cohort": "0", "schedule.rounds.max": "0", "silo.least": "0"}

// load reads the task as a way has it. It returns the first refusal that no reset helps.
func (c Config) load(w way, sets []string) (*task.Spec, []string, error) {
	for {
		spec, err := c.Load(sets)
		var refused *task.FieldError
		if errors.As(err, &refused) {
			value, known := resets[refused.Path]
			if set := refused.Path + "=" + value; known && !slices.Contains(sets, set) {
				sets = append(slices.Clone(sets), set)
				continue
			}
		}
		if err != nil || !w.events {
			return spec, sets, err
		}
		items := spec.User.Items
		spec.Privacy.Unit, spec.User = "", nil
		if spec.Silo != nil {
			spec.Silo.Units, spec.Silo.Least = items*spec.Silo.Units, items*spec.Silo.Least
		}
		spec.Schedule.Users *= items
		return spec, nil, spec.Validate()
	}
}

// plan plans every way with the practical plan and with every method that has a proof. leftOut lists what a
// task cannot have.
func (c Config) plan(base *task.Spec) (out []*line, leftOut []string) {
	var refused reasons
	smooth := convex.TraitsOf(base.Model.Loss).Smooth
	all := ways(base)
	for i, w := range all {
		if c.Planned != nil {
			c.Planned(i, len(all))
		}
		for _, method := range append([]string{schedule.Practical}, schedule.Names()...) {
			m, proved := schedule.Of(method)
			if proved && (m.Envelope && smooth || m.Interactive && !w.many || w.events) {
				// the bound without the envelope is the same; it is a line of many passes; one method tells what events are
				continue
			}
			one, err := c.line(base, w, method)
			if err != nil {
				if !proved || m.Interactive == w.many {
					refused.add(w, method, err)
				}
				if !proved {
					break
				}
				continue
			}
			if again := manifest.RoundsPerUser(one.job.Plan) > 1; again == w.many {
				// else it is the line of the other number of passes
				out = append(out, one)
			}
		}
	}
	return out, refused.told(base)
}

func (c Config) line(base *task.Spec, w way, method string) (*line, error) {
	spec, sets, err := c.load(w, w.with(base, method))
	if err != nil {
		return nil, err
	}
	job, err := run.NewJob(spec)
	if err != nil {
		return nil, err
	}
	if err := job.Runnable(); err != nil {
		return nil, err
	}
	return newLine(base, w, sets, job), nil
}

// reasons collects why some lines are missing for a task.
type reasons struct {
	texts []string // in the order of the first line
	lines map[string][]string
}

func (r *reasons) add(w way, method string, err error) {
	var refused *task.FieldError
	text, who := err.Error(), method
	if errors.As(err, &refused) {
		text = refused.Error()
	}
	if method == schedule.Practical {
		if who = "one pass under " + w.trust; w.many {
			who = "many passes under " + w.trust
		}
	}
	text = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(text, "task: "), "plan: "), method+": ")
	if _, why, found := strings.Cut(text, " here: "); found { // without the list of what would do
		text = why
	}
	r.put(who, text)
}

func (r *reasons) put(who, text string) {
	if r.lines == nil {
		r.lines = map[string][]string{}
	}
	if r.lines[text] == nil {
		r.texts = append(r.texts, text)
	}
	if !slices.Contains(r.lines[text], who) {
		r.lines[text] = append(r.lines[text], who)
	}
}

func (r *reasons) all() (out []string) {
	for _, text := range r.texts {
		out = append(out, strings.Join(r.lines[text], ", ")+": "+text)
	}
	return out
}

// told lists what is not shown, and what to add in order to see it.
func (r *reasons) told(base *task.Spec) (out []string) {
	if base.Silo == nil {
		out = append(out,
			"organisations that hold many rows each: a section silo (count, units) says how many there are, and of how many rows")
	}
	if !base.Privacy.ByUser() {
		out = append(out,
			"all rows of a person protected together: privacy.unit user, and a section user (column, items) that says whose a row is")
	}
	return append(out, r.all()...)
}
