package httpgateway

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const goodEvent = `{"key": "anna", "event": {"age": 50, "sector": "public", "income": ">50K", "name": "passed over"}}`

// An event is waiting, accepted when its participation is durable, and counted in the end; the same key is answered,
// and one report is sent of it.
func TestAnEventsLife(t *testing.T) {
	bodyOf(t, columns) // planned outside the bubble, in which time stops
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, columns, nil)
		defer w.end()
		begun := time.Now()
		if a := w.expect("", goodEvent, http.StatusAccepted, "waiting"); a["fits"] != true {
			t.Errorf("the first post: %v", a)
		}
		again := func(query, body string, status int, outcome string) map[string]any {
			t.Helper()
			a := w.expect(query, body, status, outcome)
			if _, there := a["fits"]; there { // the first event is what was or will be sent
				t.Errorf("of a key that is known it says whether what was just posted fits: %v", a)
			}
			return a
		}
		again("?wait=0", goodEvent, http.StatusAccepted, "waiting")
		if took := time.Since(begun); took != 0 {
			t.Errorf("two posts without a wait took %v", took)
		}
		again("?wait=3", `{"key": "anna", "event": {"age": "old"}}`, http.StatusAccepted, "waiting")
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("wait=3 took %v", took)
		}
		time.AfterFunc(time.Second, w.openRound)
		begun = time.Now()
		a := again("?wait=60", goodEvent, http.StatusAccepted, "accepted")
		if took := time.Since(begun); took < time.Second || took > 2*time.Second {
			t.Errorf("accepted after %v, open after 1s", took)
		}
		if a["final"] != false || a["round"] != 1.0 {
			t.Errorf("accepted: %v", a)
		}
		again("?until=outcome&wait=1", goodEvent, http.StatusAccepted, "accepted")
		time.AfterFunc(time.Second, w.closeRounds)
		again("?until=outcome&wait=60", goodEvent, http.StatusOK, "counted")
		if n := w.reports(); n != 1 {
			t.Errorf("%d reports, want 1", n)
		}
		for _, line := range []string{"0", "60"} {
			_, answers := w.batch("?wait="+line, goodEvent, strings.Replace(goodEvent, "anna", "bert"+line, 1),
				`{"key": "bert`+line+`"}`)
			_, known := answers[0]["fits"]
			if _, twice := answers[2]["fits"]; known || twice || answers[1]["fits"] != true {
				t.Errorf("a key that is known, a new one, and that again: %v", answers)
			}
		}
		w.end()
		w.start(options{}) // another process
		if a := again("", goodEvent, http.StatusOK, "counted"); a["final"] != true || a["round"] != 1.0 {
			t.Errorf("counted: %v", a)
		}
	})
}

// A batch takes each line as a request of its own, and one that is no JSON takes none of the others with it; outcomes
// are asked by key, and waited for.
func TestABatchsLife(t *testing.T) {
	bodyOf(t, columns)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, columns, nil)
		defer w.end()
		w.openRound()
		line := func(key string) string { return strings.Replace(goodEvent, "anna", key, 1) }
		status, answers := w.batch("?wait=60", line("a"), `{"key": "b", "event": {"age": NaN`, "", `{"event": {}}`,
			line("c")+"\r",
			`{"key": "d", "event": {"x": "`+strings.Repeat("x", 3<<20)+`"}}`, "no JSON")
		if status != http.StatusOK || len(answers) != 6 {
			t.Fatalf("%d: %v", status, answers)
		}
		for i, want := range []struct {
			key  string
			fits any
		}{{"a", true}, {"b", false}, {"", nil}, {"c", true}, {"d", false}, {"", nil}} {
			got := answers[i]
			if got["key"] != want.key || got["fits"] != want.fits || (got["error"] == nil) != (want.key != "") ||
				want.key != "" && got["outcome"] != "accepted" {
				t.Errorf("line %d: %v", i, got)
			}
		}
		time.Sleep(time.Second) // accepted comes before sent
		if n := w.reports(); n != 4 {
			t.Errorf("%d reports of 4 lines with keys", n)
		}
		_, told := w.ask("", "a", "nobody")
		if told[0]["outcome"] != "accepted" || told[0]["final"] != false || told[1]["error"] == nil ||
			told[1]["outcome"] != nil {
			t.Errorf("at first: %v", told)
		}
		time.AfterFunc(2*time.Minute, w.closeRounds)
		begun := time.Now()
		_, told = w.ask("?wait=600", "a", "b", "c", "d")
		for _, one := range told {
			if one["outcome"] != "counted" || one["final"] != true {
				t.Errorf("in the end: %v", one)
			}
		}
		if took := time.Since(begun); took < 2*time.Minute || took > 3*time.Minute {
			t.Errorf("outcomes came after %v, the round closed after 2m", took)
		}
		if status, _ := w.batch("", strings.Repeat("\n{}", maxLines+1)); status != http.StatusRequestEntityTooLarge {
			t.Errorf("a batch of too many lines: %d", status)
		}
		for _, body := range []string{`{}`, `{"keys": 1}`, `{"keys": ["a"], "more": 1}`, `[]`, ``, `{"keys": ["a"]} x`} {
			if status, _ := w.do(w.request(http.MethodPost, "/v1/outcomes", strings.NewReader(body))); status !=
				http.StatusBadRequest {
				t.Errorf("%s: %d", body, status)
			}
		}
	})
}

// The lines of a batch are offered together, at the end of a span that their number gives, whatever they hold.
func TestBatchesAreOfferedAtTheEndOfASpan(t *testing.T) {
	bodyOf(t, columns)
	synctest.Test(t, func(t *testing.T) {
		for name, filling := range map[string]string{"small": "", "large": strings.Repeat("x", 60_000), "broken": `"}{`} {
			w := newWorld(t, columns, nil)
			w.openRound()
			w.expect("?wait=9", goodEvent, http.StatusAccepted, "accepted") // the task is known
			begun := time.Now()
			line := `{"key": "b", "event": {"age": 1, "x": "` + filling + `"}}`
			_, answers := w.batch("?wait=30", line)
			took := time.Since(begun)
			if span := span(w.gateway.shape().Bytes); took < span || took > span+100*time.Millisecond {
				t.Errorf("%s: accepted after %v, want a span of %v and a tick: %v", name, took, span, answers)
			}
			w.end()
		}
	})
}

// Many events at default settings take no longer than without a wait: a request waits for what it requests, and for
// nothing else.
func TestADefaultPostDoesNotWait(t *testing.T) {
	bodyOf(t, columns)
	synctest.Test(t, func(t *testing.T) {
		var took [2]time.Duration
		for i, query := range []string{"", "?wait=0"} {
			w := newWorld(t, columns, func(c *Config) { c.Rate = 1e6 })
			w.expect("?wait=1", goodEvent, http.StatusAccepted, "waiting")
			begun := time.Now()
			for n := range 3000 { // no round is open
				w.expect(query, strings.Replace(goodEvent, "anna", strings.Repeat("k", n%200+1)+string(rune('a'+n/200)), 1),
					http.StatusAccepted, "waiting")
			}
			took[i] = time.Since(begun)
			w.end()
		}
		if took[0] != took[1] {
			t.Errorf("3000 events take %v by default and %v with wait=0", took[0], took[1])
		}
	})
}
