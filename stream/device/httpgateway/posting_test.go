package httpgateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// newPeople returns a gateway of a task that protects people, of whom so many events enter a report.
func newPeople(t *testing.T, items int) *world {
	return newWorldOf(t, columns, options{sets: ofPeople(items), config: func(c *Config) { c.MaxBody = 300 }})
}

func ofPeople(items int) []string {
	return []string{"privacy.unit=user", fmt.Sprintf("user={column: who, items: %d, wait: 1h}", items)}
}

// All events of a person are one report, and a body that does not fit takes part with what fits of it; another request
// of the same person is answered.
func TestPeopleArePosted(t *testing.T) {
	bodyOf(t, columns, ofPeople(2)...)
	synctest.Test(t, testPeopleArePosted)
}

func testPeopleArePosted(t *testing.T) {
	const good, other, bad = `{"age": 50, "sector": "public", "income": ">50K"}`,
		`{"age": 1, "sector": "private", "income": "<=50K"}`, `{"age": "old"}`
	for name, c := range map[string]struct {
		body    string
		fits    bool
		surplus any
	}{
		"nobody's events":       {`"events": []`, true, nil},
		"one":                   {`"events": [` + good + `]`, true, nil},
		"two":                   {`"events": [` + other + `, ` + good + `]`, true, nil},
		"surplus":               {`"events": [` + good + `, ` + other + `, ` + bad + `, ` + good + `]`, true, 2.0},
		"one that is none":      {`"events": [` + bad + `, ` + other + `]`, false, nil},
		"one that is no object": {`"events": [[1], ` + other + `]`, false, nil},
		"one that is too large": {`"events": [{"name": "` + strings.Repeat("x", 70_000) + `"}, ` + other + `]`, false, nil},
		"null":                  {`"events": null`, false, nil},
		"no events":             {`"more": 1`, false, nil},
		"a single event":        {`"event": ` + good, false, nil},
		"what is no JSON":       {`"events": [{"age": NaN}]`, false, nil},
		"a body without end":    {`"events": [` + strings.Repeat(good+",", 10_000), false, nil},
	} {
		w := newPeople(t, 2)
		w.openRound()
		w.closeRounds()
		a := w.expect("?until=outcome&wait=60", `{"key": "anna", `+c.body+`}`, http.StatusOK, "counted")
		if a["fits"] != c.fits || a["surplus"] != c.surplus {
			t.Errorf("%s: %v, want fits %t and surplus %v", name, a, c.fits, c.surplus)
		}
		again := w.expect("?until=outcome&wait=60", `{"key": "anna", "events": [`+good+`]}`, http.StatusOK, "counted")
		if _, there := again["fits"]; there {
			t.Errorf("%s: another request of the same person says whether it fits: %v", name, again)
		}
		if n := w.reports(); n != 1 || again["final"] != true {
			t.Errorf("%s: %d reports after another request of the same person, which was answered %v", name, n, again)
		}
		w.end()
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
	bodyOf(t, columns, ofPeople(30)...)
	const good = `{"age": 50, "sector": "public", "income": ">50K"}`
	for name, body := range map[string]string{
		"nobody's": `{"key": "anna", "events": []}`,
		"many":     `{"key": "anna", "events": [` + good + strings.Repeat(","+good, 1500) + `]}`,
		"broken":   `{"key": "anna", "events": [` + good + strings.Repeat(","+good, 1500) + `}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newPeople(t, 30)
			defer w.end()
			w.openRound()
			w.expect("?wait=60", `{"key": "bert", "events": []}`, http.StatusAccepted, "accepted") // the round is known
			begun := time.Now()
			status, a := w.do(w.request(http.MethodPost, "/v1/events?wait=60", &slowReader{body, time.Millisecond}))
			if status != http.StatusAccepted || a["outcome"] != "accepted" {
				t.Errorf("%s: status %d, %v", name, status, a)
			}
			span := span(w.gateway.shape().Room)
			if took := time.Since(begun); took < span || took > span+w.tick() {
				t.Errorf("%s: accepted after %v, want a span of %v and a tick", name, took, span)
			}
		})
	}
}

// A task of an organisation is refused by a gateway, and a single task has no events of people.
func TestTasksOfOtherKinds(t *testing.T) {
	w := newWorld(t, columns, nil)
	defer w.end()
	w.openRound()
	if a := w.expect("?wait=9", `{"key": "anna", "events": [{"age": 50, "sector": "public", "income": ">50K"}]}`,
		http.StatusAccepted, "accepted"); a["fits"] != false {
		t.Errorf("events of a person where single events are protected: %v", a)
	}
	silo := newWorldOf(t, columns, options{sets: []string{"silo={count: 10, units: 10}", "schedule.users=100"}})
	defer silo.end()
	a := silo.expect("?wait=9", goodEvent, http.StatusForbidden, "refused")
	if why, _ := a["refused"].(map[string]any); why["field"] != "silo" || silo.reports() != 0 {
		t.Errorf("a task of an organisation: %v", a)
	}
}
