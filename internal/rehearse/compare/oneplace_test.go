package compare

import (
	"math"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run/curated"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/oneplace"
	"github.com/panlearn/panlearn/learner/research/curator"
	"github.com/panlearn/panlearn/learner/research/private"
	"github.com/panlearn/panlearn/learner/task"
)

// curatedOf returns a method with a bound, Inf: none.
func curatedOf(method string, bound float64) Curated {
	m, _ := curated.Of(method)
	c := Curated{Method: method, method: m}
	c.proves(bound, oneplace.Problem{Lipschitz: 1, Set: convex.Ball{R: 1}})
	return c
}

func onePlaceOf(t *testing.T, name string, sets ...string) (*task.Spec, []Curated) {
	t.Helper()
	spec, err := configOf(t, name, sets...).Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := onePlace(spec)
	if err != nil {
		t.Fatal(err)
	}
	return spec, out
}

// Every method is listed with the number of people that it needs, and with a bound where the task is bounded.
// A method without a bound, or with a larger one than the best baseline's, names that baseline.
func TestOnePlace(t *testing.T) {
	for name, n := range map[string]int{"events": 1000, "people": 400, "records": 1200, "one table": 1000,
		"patients": 600} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, got := onePlaceOf(t, name, "model.radius=5")
			p, err := curated.ProblemOf(spec, people(spec))
			if err != nil || p.People != n || people(spec) != n {
				t.Fatal(p, err)
			}
			seen := map[string]Curated{}
			least := math.Inf(1)
			for _, c := range got {
				seen[c.Method] = c
				if c.method.Standing == oneplace.Baseline && c.Proved != nil {
					least = min(least, *c.Proved)
				}
			}
			if !(least < 5) { // the clip norm times the radius
				t.Errorf("the least bound of a baseline is %v", least)
			}
			for _, m := range curator.OnePlace() {
				c, known := seen[m.Name]
				if !known || c.Least != m.Least(p) || (c.Least > n) != (c.Refused != "" &&
					strings.Contains(c.Refused, "want at least")) {
					t.Errorf("%s: %+v", m.Name, c)
				}
				if worse := c.Proved == nil || *c.Proved > least; worse != (c.Better != "") || c.Better != "" &&
					(seen[c.Better].method.Standing != oneplace.Baseline || c.BetterProved != least) {
					t.Errorf("%s: %+v, the best baseline has %v", m.Name, c, least)
				}
			}
			for _, name := range []string{private.NoisySGD, private.ReSQue, private.ReSQueSCO} {
				if c, known := seen[name]; known == spec.Privacy.ByUser() || known && c.Proved == nil && c.Refused == "" {
					t.Errorf("%s: %+v", name, c)
				}
			}
			if c, known := seen[private.ReSQue]; known && c.Better == "" {
				t.Errorf("no baseline is better than %+v", c)
			}
		})
	}
}

// A task that does not declare how far from 0 a model may be has no bounds, and the table gives the reason; the numbers
// of people needed, and crossovers, do not depend on it.
func TestOnePlaceWithoutARadius(t *testing.T) {
	_, without := onePlaceOf(t, "people")
	_, with := onePlaceOf(t, "people", "model.radius=5")
	for i, c := range without {
		if c.Refused != radiusMissing || c.Proved != nil || c.Better != "" {
			t.Errorf("%+v", c)
		}
		if o := with[i]; c.Least != o.Least || c.PaperLeast != o.PaperLeast || c.Compared != o.Compared ||
			(c.LessNoiseFrom == nil) != (o.LessNoiseFrom == nil) {
			t.Errorf("%+v without and %+v with a radius", c, o)
		}
	}
}

func TestJudge(t *testing.T) {
	methods := []Curated{curatedOf("output", 0.5), curatedOf("output-phases", 0.3), curatedOf("gradscore", math.Inf(1)),
		curatedOf("phased-sco", 0.9), curatedOf("filtered", 0.2),
		curatedOf(private.NoisySGD, 0.1), curatedOf(private.ReSQue, 0.2)}
	judge(methods)
	for i, want := range []string{"output-phases", "", "output-phases", "output-phases", "", "", private.NoisySGD} {
		if methods[i].Better != want {
			t.Errorf("%s: %q is better, want %q", methods[i].Method, methods[i].Better, want)
		}
	}
	if methods[2].BetterProved != 0.3 || methods[6].BetterProved != 0.1 {
		t.Errorf("%+v", methods)
	}
}

// What is printed of methods of one process: no line is marked, and a crossover that there is none of says so.
func TestPrintOnePlace(t *testing.T) {
	from := 1234
	far, none, few := curatedOf("gradscore", 0.9), curatedOf("deletion", math.Inf(1)), curatedOf("filtered", math.Inf(1))
	far.Least, far.PaperLeast, far.Compared, far.LessNoiseFrom = 102, 130, true, &from
	none.Least, none.Compared, none.Refused = 2, true, "deletion: more than 14 people would take for ever"
	few.Least, few.Compared, few.Refused = 354, true, "filtered: 300 people: want at least 354"
	base := curatedOf("output-phases", 0.3)
	methods := []Curated{base, far, none, few}
	judge(methods)
	var out strings.Builder
	if err := (Table{OnePlace: methods, People: 300, units: unitsOf(&task.Spec{})}).printOnePlace(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gradscore      102             130      1234 rows each   0.9          output-phases, 0.3\n", "never", "is the baseline", "300 events",
		"not planned   deletion: more than 14"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for _, wrong := range []string{"\n*", "not planned   filtered"} { // the table gives the number it needs
		if strings.Contains(out.String(), wrong) {
			t.Errorf("%q in\n%s", wrong, out.String())
		}
	}
}
