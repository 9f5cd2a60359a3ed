package httpgateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// newPeople is a gateway of a task that protects people, of whom so many events enter a report.
func newPeople(t *testing.T, declaration string, items int) *world {
	w := newWorld(t, declaration, func(c *Config) { c.MaxBody = 300 })
	w.agreement.Spec.Privacy.Unit, w.agreement.Spec.User = task.UnitUser, &task.User{Column: "who", Items: items}
	return w
}

// All events of a person are one report about the first of them, which are mapped as the same rows of a file would be; a body that does not fit
// takes part with what fits of it.
func TestPeopleArePosted(t *testing.T) {
	const good, other, bad = `{"age": 50, "sector": "public", "income": ">50K"}`, `{"age": 1, "sector": "private", "income": "<=50K"}`, `{"age": "old"}`
	anna := []convex.Example{{Index: []int32{0, 2, 3}, Value: []float64{0.5, 1, 1}, Label: 1}, {Index: []int32{0, 1, 3}, Value: []float64{0.01, 1, 1}, Label: -1}}
	for name, c := range map[string]struct {
		body    string
		fits    bool
		surplus any
		want    []int // of anna's, by number; -1: the zero vector
	}{
		"nobody's events":       {`"events": []`, true, nil, nil},
		"one":                   {`"events": [` + good + `]`, true, nil, []int{0}},
		"two":                   {`"events": [` + other + `, ` + good + `]`, true, nil, []int{1, 0}},
		"surplus":               {`"events": [` + good + `, ` + other + `, ` + bad + `, ` + good + `]`, true, 2.0, []int{0, 1}},
		"one that is none":      {`"events": [` + bad + `, ` + other + `]`, false, nil, []int{-1, 1}},
		"one that is no object": {`"events": [[1], ` + other + `]`, false, nil, []int{-1, 1}},
		"one that is too large": {`"events": [{"name": "` + strings.Repeat("x", 70_000) + `"}, ` + other + `]`, false, nil, []int{-1, 1}},
		"null":                  {`"events": null`, false, nil, nil},
		"no events":             {`"more": 1`, false, nil, nil},
		"a single event":        {`"event": ` + good, false, nil, nil},
		"what is no JSON":       {`"events": [{"age": NaN}]`, false, nil, nil},
		"a body without end":    {`"events": [` + strings.Repeat(good+",", 10_000), false, nil, nil},
	} {
		w := newPeople(t, columns, 2)
		close(w.open)
		close(w.over)
		a := w.expect("?until=outcome", `{"key": "anna", `+c.body+`}`, http.StatusOK, "counted")
		if a["fits"] != c.fits || a["surplus"] != c.surplus {
			t.Errorf("%s: %v, want fits %t and surplus %v", name, a, c.fits, c.surplus)
		}
		rows, ok := w.blocks[participation.EventKey("anna")]
		if !ok || len(rows) != len(c.want) || len(w.got) != 0 {
			t.Errorf("%s: %d rows, %t, and %d single events; want %d rows", name, len(rows), ok, len(w.got), len(c.want))
			continue
		}
		for i, n := range c.want {
			valid := w.agreement.Valid(rows[i]) == nil
			if valid != (n >= 0) || valid && (rows[i].Label != anna[n].Label || !slices.Equal(rows[i].Index, anna[n].Index)) {
				t.Errorf("%s: row %d is %v %v, want that of number %d", name, i, rows[i].Index, rows[i].Label, n)
			}
		}
		again := w.expect("?until=outcome", `{"key": "anna", "events": [`+good+`]}`, http.StatusOK, "counted")
		if w.calls != 1 || again["final"] != true {
			t.Errorf("%s: %d reports after another request of the same person, which was answered %v", name, w.calls, again)
		}
		w.gateway.Close()
	}
}

// A person's events are mapped in the time of as many as may be, whatever their number.
func TestPeopleTakeTheSameWork(t *testing.T) {
	m := new(mapper)
	w := newPeople(t, vector, 5)
	defer w.gateway.Close()
	must(t, m.use(w.agreement))
	for given := range 8 {
		event, err := json.Marshal(vectorEvent{Value: []float64{1, 0, 0, 0}, Label: json.RawMessage("1")})
		must(t, err)
		p := m.person("a", fmt.Appendf(nil, `{"key": "a", "events": [%s]}`, strings.TrimSuffix(strings.Repeat(string(event)+",", given), ",")))
		mapped := 0
		m.onMap = func() { mapped++ }
		if out, err := m.examples(p); err != nil || len(out) != min(given, 5) || mapped != 5 {
			t.Errorf("of %d events %d enter, %d are mapped, %v; want 5 mapped", given, len(out), mapped, err)
		}
	}
}

// A task of an organisation is refused by a gateway, and a single task has no events of people.
func TestTasksOfOtherKinds(t *testing.T) {
	w := newWorld(t, columns, nil)
	defer w.gateway.Close()
	close(w.open)
	if a := w.expect("", `{"key": "anna", "events": [{"age": 50, "sector": "public", "income": ">50K"}]}`, http.StatusAccepted, "accepted"); a["fits"] != false {
		t.Errorf("events of a person where single events are protected: %v", a)
	}
	silo := newWorld(t, columns, nil)
	defer silo.gateway.Close()
	silo.agreement.Spec.Silo = &task.Silo{Count: 2, Units: 10}
	a := silo.expect("", goodEvent, http.StatusForbidden, "refused")
	if why, _ := a["refused"].(map[string]any); why["field"] != "silo" || silo.calls != 0 {
		t.Errorf("a task of an organisation: %v, %d calls", a, silo.calls)
	}
}
