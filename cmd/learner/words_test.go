package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/rehearse"
	"github.com/panlearn/panlearn/internal/rehearse/compare"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/runlearner"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/learner/planning"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/state"
)

// spoken holds the words that each kind of task must use, and those it must not: of silos no users and events, of
// people no single event.
var spoken = map[string]struct{ want, wrong string }{
	"event": {`one event of one user`, `\bsilos?\b|\brecords?\b|all events of|who is charged`},
	"user": {`all events of one user`,
		`\bsilos?\b|\brecords?\b|one event of one user|the event (that|is)|(device|user)'s own event\b`},
	"silo, event": {`one record of one silo`, `\busers?\b|\bevents?\b|\bpeople\b|\bpersons?\b|who is charged`},
	"silo, user": {`all records of one person at one silo`,
		`\busers?\b|\bevents?\b|one record of one silo|the record (that|is)`},
}

// No task prints the wrong word: plan, status, ledger, snapshot and page of tasks that protect events, users, records
// and people, under every kind of trust, in one pass and in many.
func TestNoTaskPrintsTheWrongWord(t *testing.T) {
	for name, said := range spoken {
		for _, trust := range []string{"shuffle", "local", "pan"} {
			for _, many := range []bool{false, true} {
				if many && trust != "local" || trust == "pan" && strings.HasSuffix(name, "user") {
					continue // many passes under pan are refused; the rest says nothing that these do not
				}
				t.Run(fmt.Sprintf("%s, %s, many passes %t", name, trust, many), func(t *testing.T) {
					t.Parallel()
					texts := textsOf(t, spokenJob(t, name, trust, many))
					if trust == "local" && !strings.Contains(texts["plan"], "and all other "+who(name)+" together") {
						t.Errorf("the plan does not say that all other %s are adversaries:\n%s", who(name), texts["plan"])
					}
					for where, text := range texts {
						if bad := regexp.MustCompile("(?i)" + said.wrong).FindStringIndex(text); bad != nil {
							t.Errorf("%s says %q: ...%s...", where, text[bad[0]:bad[1]], text[max(0, bad[0]-80):min(len(text), bad[1]+80)])
						}
						if strings.HasPrefix(where, "plan") || strings.HasPrefix(where, "snapshot") || strings.HasPrefix(where, "page") {
							if !strings.Contains(text, said.want) {
								t.Errorf("%s does not say %q:\n%s", where, said.want, text)
							}
						}
					}
				})
			}
		}
	}
}

func who(name string) string {
	if strings.HasPrefix(name, "silo") {
		return "silos"
	}
	return "users"
}

// Nor does the table in which to choose, but where it says what to declare to see further lines.
func TestNoTableSaysTheWrongWord(t *testing.T) {
	for name, said := range spoken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// practical plans alone
			file := strings.ReplaceAll(spokenFile(name, "shuffle", "rounds: {max: 3}", false), ", radius: 5, clip_norm: 1", "")
			load := func(sets []string) (*task.Spec, error) { return task.Parse([]byte(file), sets) }
			spec, err := load(nil)
			if err != nil {
				t.Fatal(err)
			}
			features, err := spec.Compile()
			if err != nil {
				t.Fatal(err)
			}
			c, err := compare.New(compare.Config{Load: load, Rows: rehearse.MadeUp{Spec: spec, Features: features}, Seeds: 2})
			if err != nil {
				t.Fatal(err)
			}
			table, err := c.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			table.LeftOut = nil
			for i := range table.Lines {
				table.Lines[i].Set = nil // keys of the task file
			}
			var out strings.Builder
			if err := table.Print(&out); err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(out.String(), "another unit", "")
			if bad := regexp.MustCompile("(?i)" + said.wrong).FindString(text); bad != "" {
				t.Errorf("the table says %q:\n%s", bad, text)
			}
		})
	}
}

const spokenTask = `
version: 1
name: churn
events: {format: csv, columns: [id, a, b, churned]}
features: {columns: [{column: a, kind: numeric, min: -1, max: 1}, {column: b, kind: numeric, min: -1, max: 1}]}
label: {column: churned, positive: ["1"], negative: ["0"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
`

func spokenFile(name, trust, schedule string, many bool) string {
	unit, who := "event", ""
	if name == "user" {
		unit, who = "user", "user: {column: id, items: 4}\n"
	}
	if strings.HasPrefix(name, "silo") {
		who = "silo: {count: 20, units: 250}\n"
	} else {
		schedule += fmt.Sprintf(", users: 5000, interactive: %t", many)
	}
	return fmt.Sprintf("%sprivacy: {epsilon: 1, delta: 1e-6, trust: %s, unit: %s}\nschedule: {%s}\n%s", spokenTask, trust,
		unit, schedule, who)
}

// spokenJob plans a task. Some plans differ from what a declaration allows: these are planned again.
func spokenJob(t *testing.T, name, trust string, many bool) run.Job {
	t.Helper()
	silo := strings.HasPrefix(name, "silo")
	schedule := "rounds: {max: 8}" // of a practical plan
	if trust == "shuffle" {
		schedule = "plan: proved, algorithm: psgd"
	}
	spec, err := task.Parse([]byte(spokenFile(name, trust, schedule, many)), nil)
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.NewJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	if !silo || name == "silo, event" && !many {
		return job
	}
	if name == "silo, user" {
		job.Problem.ByUser, job.Problem.Radius = true, 0.5
	}
	if many {
		job.Problem.Interactive = true
	}
	if job.Proposal, err = planning.MakePlan(job.Problem); err != nil {
		t.Fatal(err)
	}
	return job
}

// textsOf returns the texts shown to people about a job, by the command or page that shows them.
func textsOf(t *testing.T, job run.Job) map[string]string {
	t.Helper()
	s, err := survey(job)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	print := func(err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer out.Reset()
		return out.String()
	}
	// The advice against trust local without silos names silos, records and another trust.
	texts := map[string]string{"plan": strings.ReplaceAll(print(s.report.print(&out)), s.report.Useless, "")}
	texts["plan --json"] = strings.ReplaceAll(valuesOf(t, s.report), s.report.Useless, "")
	body, err := job.Wire()
	if err != nil {
		t.Fatal(err)
	}
	body.Name = job.Spec.Name
	alg, err := learner.New(job.Plan)
	if err != nil {
		t.Fatal(err)
	}
	view := statedir.View{Task: body, Spec: job.Spec, Algorithm: alg,
		Checkpoint: state.Checkpoint{Ledger: state.Ledger{Counted: 20}}}
	status, err := view.Status()
	if err != nil {
		t.Fatal(err)
	}
	status.Validation = &method.Validation{Rounds: 3, LossBound: 3, Worse: true, Repeated: status.Interactive}
	texts["status"], texts["status --json"] = print(printStatus(&out, status)), valuesOf(t, status)
	report, err := view.LedgerReport()
	if err != nil {
		t.Fatal(err)
	}
	var ledger map[string]any
	doc, err := json.Marshal(report)
	if err != nil || json.Unmarshal(doc, &ledger) != nil {
		t.Fatal(err)
	}
	ledger["entries"], ledger["chain"] = []any{}, []statedir.LedgerEntry{{Sequence: 1, Kind: "spent", Round: 1, Users: 20}}
	if doc, err = json.Marshal(ledger); err != nil {
		t.Fatal(err)
	}
	texts["ledger"] = print(printLedger(&out, bytes.NewReader(doc)))
	snapshot, err := view.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	texts["snapshot"], texts["snapshot --json"] = snapshot.Privacy.String(), valuesOf(t, snapshot.Privacy)
	pagesOf(t, job, status, texts)
	return texts
}

// valuesOf returns the texts in a JSON document, one a line, except the word of privacy.unit.
func valuesOf(t *testing.T, doc any) (text string) {
	t.Helper()
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var all any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	var walk func(any)
	walk = func(x any) {
		switch x := x.(type) {
		case map[string]any:
			delete(x, "protects")
			for _, y := range x {
				walk(y)
			}
		case []any:
			for _, y := range x {
				walk(y)
			}
		case string:
			text += x + "\n"
		}
	}
	walk(all)
	return text
}

var (
	hidden = regexp.MustCompile(`(?s)<script.*?</script>|<style.*?</style>|<[^>]*>`)
	labels = regexp.MustCompile(`aria-label="[^"]*"`)
)

// pagesOf adds the live page at four moments: before the first report, while a round waits, where scores fall, and at
// the end.
func pagesOf(t *testing.T, job run.Job, status statedir.Status, texts map[string]string) {
	t.Helper()
	store := storetest.NewMemory()
	defer store.Close()
	body, err := job.Wire()
	if err != nil {
		t.Fatal(err)
	}
	site, err := runlearner.NewSite(job.Spec, body, store, "", runlearner.Expected(job), runlearner.Reach{})
	if err != nil {
		t.Fatal(err)
	}
	look := func(when string) {
		w := httptest.NewRecorder()
		site.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		html := w.Body.String()
		texts["page, "+when] = strings.ReplaceAll(hidden.ReplaceAllString(html, " ")+strings.Join(labels.FindAllString(html,
			-1), " "), "&#39;", "'")
	}
	p := service.Progress{Rounds: 8, EpsilonSpent: 0.9, EpsilonBudget: 1, Delta: 1e-6}
	site.Board.Resumed(p)
	site.Board.Announced(1, 20)
	look("before the first report")
	p.Round, p.Steps, p.Users = 1, 1, 20
	p.Validation = status.Validation
	site.Board.Applied(service.Applied{Progress: p, Attempt: 1, Cohort: 20, BatchUsers: 20, NoiseStd: 0.1, GradientNorm: 1,
		Took: time.Second})
	site.Board.Announced(2, 20)
	look("where scores fall")
	site.Ended(t.Context(), nil)
	look("at the end")
}

// A person's mean is shorter than a row's gradient may be: noise and all that it is compared with are in units of a
// row's clip, with and without scores.
func TestNoiseOfPeople(t *testing.T) {
	for _, off := range []bool{false, true} {
		job := spokenJob(t, "user", "shuffle", false)
		if off {
			var err error
			job.Problem.Validation = nil
			if job.Proposal, err = planning.MakePlan(job.Problem); err != nil {
				t.Fatal(err)
			}
		}
		s, err := survey(job)
		if err != nil {
			t.Fatal(err)
		}
		r := s.report
		var out strings.Builder
		if err := r.print(&out); err != nil {
			t.Fatal(err)
		}
		printed := regexp.MustCompile(`\nnoise +(\S+) of the clip norm`).FindStringSubmatch(out.String())
		noise, err := strconv.ParseFloat(printed[1], 64)
		if err != nil || noise < r.Comparison.CentralNoiseStd || noise > 2*r.Comparison.CentralNoiseStd ||
			r.Comparison.LocalNoiseStd < noise {
			t.Errorf("scores off %v: noise %v, central %v, local %v: %v", off, noise, r.Comparison.CentralNoiseStd,
				r.Comparison.LocalNoiseStd, err)
		}
		if !off && !strings.Contains(out.String(), "noise 3.1 % larger") {
			t.Error(out.String())
		}
	}
}

// The noise of the mean of all units, if all were in one round: under trust local every reporter adds his own, else the
// sum's is the same however many there are.
func TestNoiseOfAll(t *testing.T) {
	for _, c := range []struct {
		name, trust string
		reporters   float64 // who bring noise of their own
	}{{"event", "local", 5000}, {"silo, event", "local", 20}, {"event", "shuffle", 0}, {"silo, event", "shuffle", 0}} {
		s, err := survey(spokenJob(t, c.name, c.trust, false))
		if err != nil {
			t.Fatal(err)
		}
		r := s.report
		// share of a reporter's units that is in one report
		units := float64(r.Units) / (float64(r.Users) / max(1, c.reporters))
		want := r.ReportNoise * units / math.Sqrt(c.reporters)
		if c.trust == "shuffle" {
			want = r.scale * r.Privacy.NoiseStd * float64(r.Cohort) * float64(r.Units) / float64(r.Users)
		}
		if got := r.Binding.AllNoise / math.Sqrt(float64(r.Dim)); math.Abs(got/want-1) > 0.03 { // rounding is in it
			t.Errorf("%s, %s: %v in one coordinate of the mean of all, want %v", c.name, c.trust, got, want)
		}
	}
}

// TestCommandsAreGrouped checks that each command is in a group of the help, except version and what is hidden.
func TestCommandsAreGrouped(t *testing.T) {
	for _, c := range newRoot().Commands() {
		if c.GroupID == "" && c.Name() != "version" && !c.Hidden {
			t.Errorf("%s is in no group of learner --help", c.Name())
		}
	}
}
