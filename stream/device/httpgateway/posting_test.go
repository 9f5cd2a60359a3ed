package httpgateway

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// newPeople returns a gateway of a task that protects people, of whom so many events enter a report.
func newPeople(t *testing.T, declaration string, items int) *world {
	w := newWorld(t, declaration, func(c *Config) { c.MaxBody = 300 })
	w.agreement.Spec.Privacy.Unit, w.agreement.Spec.User = task.UnitUser, &task.User{Column: "who", Items: items}
	return w
}

// All events of a person are one report about the first of them, which are mapped as the same rows of a file would be;
// a body that does not fit takes part with what fits of it.
func TestPeopleArePosted(t *testing.T) { synctest.Test(t, testPeopleArePosted) }

func testPeopleArePosted(t *testing.T) {
	const good, other, bad = `{"age": 50, "sector": "public", "income": ">50K"}`,
		`{"age": 1, "sector": "private", "income": "<=50K"}`, `{"age": "old"}`
	anna := []convex.Example{{Index: []int32{0, 2, 3}, Value: []float64{0.5, 1, 1}, Label: 1}, {Index: []int32{0, 1, 3},
		Value: []float64{0.01, 1, 1}, Label: -1}}
	for name, c := range map[string]struct {
		body    string
		fits    bool
		surplus any
		want    []int // of anna's, by number; -1: the zero vector
	}{
		"nobody's events": {`"events": []`, true, nil, nil},
		"one":             {`"events": [` + good + `]`, true, nil, []int{0}},
		"two":             {`"events": [` + other + `, ` + good + `]`, true, nil, []int{1, 0}},
		"surplus": {`"events": [` + good + `, ` + other + `, ` + bad + `, ` + good + `]`, true, 2.0,
			[]int{0, 1}},
		"one that is none":      {`"events": [` + bad + `, ` + other + `]`, false, nil, []int{-1, 1}},
		"one that is no object": {`"events": [[1], ` + other + `]`, false, nil, []int{-1, 1}},
		"one that is too large": {`"events": [{"name": "` + strings.Repeat("x", 70_000) + `"}, ` + other + `]`, false, nil,
			[]int{-1, 1}},
		"null":               {`"events": null`, false, nil, nil},
		"no events":          {`"more": 1`, false, nil, nil},
		"a single event":     {`"event": ` + good, false, nil, nil},
		"what is no JSON":    {`"events": [{"age": NaN}]`, false, nil, nil},
		"a body without end": {`"events": [` + strings.Repeat(good+",", 10_000), false, nil, nil},
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

// A person's events are parsed and mapped on a tick, in the time of as many as may be, whatever their number and
// whatever they are: never before the person is offered, and as many bytes for everybody.
func TestPeopleTakeTheSameWork(t *testing.T) {
	for _, declaration := range []string{vector, columns} {
		m := new(mapper)
		w := newPeople(t, declaration, 5)
		must(t, m.use(w.agreement))
		good := `{"age": 50, "sector": "public", "income": ">50K"}`
		if declaration == vector {
			good = `{"value": [1, 0, 0, 0], "label": "1"}`
		}
		for given := range 8 {
			for name, event := range map[string]string{"valid": good, "broken": `{"age": [], "value": 7}`, "none": `7`,
				"large": `{"x": "` + strings.Repeat("x", int(m.most)) + `"}`} {
				parsed, mapped := 0, 0
				m.onMap, m.onParse = func() { mapped++ }, func(int) { parsed++ }
				body := fmt.Appendf(nil, `{"key": "a", "events": [%s]}`, strings.TrimSuffix(strings.Repeat(event+",", given), ","))
				p := m.person("a", body)
				if parsed != 0 {
					t.Fatalf("%d %s events: %d are parsed before the person is offered", given, name, parsed)
				}
				out, err := m.examples(p)
				if len(out) != min(given, 5) || mapped != 5 || (err == nil) != (name == "valid" || given == 0) {
					t.Errorf("of %d %s events %d enter, %d are mapped, %v; want 5 mapped", given, name, len(out), mapped, err)
				}
				if want := 5 + (int(m.most)-1)/len(m.decoy) + 1; parsed != want {
					t.Errorf("%d %s events: %d are parsed, decoys among them, want %d", given, name, parsed, want)
				}
			}
		}
		w.gateway.Close()
	}
}

// A slow reader hands out a body in parts, which take their time.
type slowReader struct {
	body string
	part time.Duration
}

func (r *slowReader) Read(to []byte) (int, error) {
	if r.body == "" {
		return 0, io.EOF
	}
	time.Sleep(r.part)
	n := copy(to[:min(len(to), 1000)], r.body)
	r.body = r.body[n:]
	return n, nil
}

// When a person is offered does not tell how many events the body has, nor whether it is one: reading it may take as
// long as a span.
func TestPeopleAreOfferedAtTheEndOfASpan(t *testing.T) {
	const good = `{"age": 50, "sector": "public", "income": ">50K"}`
	for name, body := range map[string]string{
		"nobody's": `{"key": "anna", "events": []}`,
		"many":     `{"key": "anna", "events": [` + good + strings.Repeat(","+good, 1500) + `]}`,
		"broken":   `{"key": "anna", "events": [` + good + strings.Repeat(","+good, 1500) + `}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newPeople(t, columns, 2000)
			defer w.gateway.Close()
			begun := time.Now()
			status, _ := w.do(w.request(http.MethodPost, "/v1/events?wait=0", &slowReader{body, time.Millisecond}))
			if status != http.StatusAccepted {
				t.Errorf("%s: status %d", name, status)
			}
			time.Sleep(time.Minute)
			w.mu.Lock()
			defer w.mu.Unlock()
			span := w.gateway.mapper.span()
			if at := w.offered.Sub(begun); w.calls != 1 || at != span {
				t.Errorf("%s: offered after %v in %d calls, want %v", name, at, w.calls, span)
			}
		})
	}
}

// What ticks are made for is the work of the largest request: as many bytes are parsed as of any that is taken.
func TestWorkIsThatOfTheLargestBody(t *testing.T) {
	for _, declaration := range []string{vector, columns} {
		w := newWorld(t, declaration, nil)
		work, err := Work(w.agreement)
		must(t, err)
		work()
		m := new(mapper)
		must(t, m.use(w.agreement))
		body, decoy := decoyBody(m), 0
		event, err := parseEvent(body, m.most)
		must(t, err)
		m.onParse = func(size int) { decoy = size }
		if _, err := m.row(event); err != nil {
			t.Errorf("the decoy is given up before its end: %v", err)
		}
		if int64(len(body)) != m.most || declaration == columns && decoy < w.agreement.Spec.Events.MaxLine-10 {
			t.Errorf("the decoy has %d bytes, want %d, of which %d are an event's", len(body), m.most, decoy)
		}
		for _, broken := range []string{`{"key": "a", "event": {"value": [1], "x": 1}}`, `{"key": "a", "event": {"age": 1}}`,
			`{`} {
			size := 0
			m.onParse = func(n int) { size += n }
			if _, err := m.example("a", []byte(broken)); err == nil || size > decoy {
				t.Errorf("%s: %d bytes, %v", broken, size, err)
			}
		}
		w.gateway.Close()
	}
}

// A task of an organisation is refused by a gateway, and a single task has no events of people.
func TestTasksOfOtherKinds(t *testing.T) {
	w := newWorld(t, columns, nil)
	defer w.gateway.Close()
	close(w.open)
	if a := w.expect("", `{"key": "anna", "events": [{"age": 50, "sector": "public", "income": ">50K"}]}`,
		http.StatusAccepted, "accepted"); a["fits"] != false {
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
