package dashboard

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/panlearn/panlearn/learner/service"
)

// TestPageWithoutScript: the plain page has every number, and loads itself again.
func TestPageWithoutScript(t *testing.T) {
	w := newScene()
	w.learn(12)
	w.pass(time.Second)
	w.report(312)
	d := w.document(t)
	d.says("tiles", "Steps taken 12 of 40 planned",
		"Accuracy 78.9 % recent rounds; between 76.0 % and 81.7 %; the majority class has about 62.0 %",
		"Time left about 2 to 3 min at the pace of the last 12 rounds",
		"Users still needed 14,000 6,000 counted, of 20,000 planned", "Reports per second",
		"Last round took 5.8 s", "Signal to noise 2.07 noise alone is about 1; its level is 0.0188 in one coordinate")
	d.says("cohort", "312 of 500 reports in round 13", "The mark is the minimum, 450.", "Attempt 1.")
	d.says("privacy", "Spent epsilon at most 0.995, delta 1e-06", "Planned within the budget, epsilon 1", "trust shuffle",
		"if in every cohort all of the users planned for are honest", "replaced by any other")
	d.says("weights", "Take it as JSON , ONNX or NumPy", "after round 12",
		"in the units of the data, 5 of 5, those of the largest effect: a weight times the declared scale of its feature.",
		"hours=40 1.25", "married −0.9")
	d.says("peers", "Broker connected", "Shuffle stage works on round 13, attempt 1")
	d.says("outcomes", "accepted and counted accepted 6,312", "range 102")
	if got := text(d.byID("outcomes")); strings.Contains(got, "wrong_round") {
		t.Errorf("counters that say nothing: %s", got)
	}
	d.says("validation", "Accuracy", "Loss", "of one event at most 3.3", "confidence 0.95", "the majority class",
		"To compare with: that of the best constant is not released.",
		"The plan expects at most 0.31 more than the best model has")
	if tables := d.all(func(n *html.Node) bool { return n.Data == "table" }); len(tables) != 2+len(charts)+1 {
		t.Errorf("%d tables, want one for each chart and one for the weights", len(tables))
	}
	refresh := d.all(func(n *html.Node) bool { return n.Data == "meta" && attribute(n, "http-equiv") == "refresh" })
	if len(refresh) != 1 || refresh[0].Parent.Data != "noscript" {
		t.Errorf("%d refreshes, want one for readers without scripts alone", len(refresh))
	}
	for _, button := range d.all(func(n *html.Node) bool { return n.Data == "button" }) {
		if !slices.ContainsFunc(button.Attr, func(a html.Attribute) bool { return a.Key == "hidden" }) {
			t.Errorf("the button %q does nothing without scripts, and is shown", text(button))
		}
	}
}

// TestPageBeforeAnything checks that a page without any information yet shows this in words.
func TestPageBeforeAnything(t *testing.T) {
	w := newScene()
	w.Board.config.Model = nil
	d := w.document(t)
	d.says("tiles", "Steps taken 0 the task has not begun", "none yet")
	d.says("cohort", "No round is announced yet.")
	d.says("privacy", "Nothing is spent")
	d.says("weights", "No model is released yet.")
	d.says("gradient", noRound)
	d.says("reports", "No report has been counted")
	d.says("peers", "Shuffle stage not asked")
}

// TestVoidRoundsAreCounted, and are not points of the curves.
func TestVoidRoundsAreCounted(t *testing.T) {
	w := newScene()
	w.learn(2)
	p := w.progress()
	p.Round++
	w.Applied(service.Applied{Progress: p, Void: true})
	d := w.document(t)
	d.says("tiles", "Steps taken 2 of 40 planned, and 1 void")
	if f, _ := w.look(); len(f.rounds.points) != 2 {
		t.Errorf("%d points, want those of the two rounds", len(f.rounds.points))
	}
}

// TestPageIsSound: landmarks, headings, names and references, of which browsers and screen readers make their outline.
func TestPageIsSound(t *testing.T) {
	w := newScene()
	w.learn(12)
	d := w.document(t)
	count := map[string]int{}
	ids := map[string]bool{}
	level := 0
	for n := range d.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		count[n.Data]++
		if id := attribute(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("two elements have the id %q", id)
			}
			ids[id] = true
		}
		if len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' {
			if now := int(n.Data[1] - '0'); now > level+1 {
				t.Errorf("heading %q is of level %d, below one of level %d", text(n), now, level)
			} else {
				level = now
			}
			if text(n) == "" {
				t.Errorf("an empty %s", n.Data)
			}
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				t.Errorf("<%s %s=%q>: the policy forbids inline scripts and styles", n.Data, a.Key, a.Val)
			}
			if (a.Key == "src" || a.Key == "href") && (strings.Contains(a.Val, ":") || strings.HasPrefix(a.Val, "/")) {
				t.Errorf("<%s %s=%q>: want an address of this server, relative to the page", n.Data, a.Key, a.Val)
			}
		}
		if (n.Data == "script" || n.Data == "style") && n.FirstChild != nil {
			t.Errorf("an inline <%s>", n.Data)
		}
		if n.Data == "svg" && attribute(n, "aria-hidden") != "true" && (attribute(n, "role") != "img" ||
			len(attribute(n, "aria-label")) < 60) {
			t.Errorf("a drawing has no text: %v", n.Attr)
		}
		if n.Data == "table" &&
			len(d.all(func(c *html.Node) bool { return c.Data == "th" && c.Parent.Parent.Parent == n })) == 0 {
			t.Error("a table has no headings")
		}
	}
	for _, one := range []string{"h1", "main", "header", "footer", "title"} {
		if count[one] != 1 {
			t.Errorf("%d of <%s>, want 1", count[one], one)
		}
	}
	for _, n := range d.all(func(n *html.Node) bool { return attribute(n, "aria-labelledby") != "" }) {
		if !ids[attribute(n, "aria-labelledby")] {
			t.Errorf("aria-labelledby %q names nothing", attribute(n, "aria-labelledby"))
		}
	}
	if v := d.byID("verdict"); attribute(v, "aria-live") != "polite" {
		t.Error("the verdict is not announced")
	}
	if live := d.all(func(n *html.Node) bool { return attribute(n, "aria-live") != "" }); len(live) != 1 {
		t.Errorf("%d live regions, want the verdict alone", len(live))
	}
}

// TestVerdictIsNotChatty: while a task learns, what is read aloud stays what it is.
func TestVerdictIsNotChatty(t *testing.T) {
	w := newScene()
	w.learn(3)
	before := text(w.document(t).byID("verdict"))
	w.report(100)
	w.commit(1)
	w.announce()
	if after := text(w.document(t).byID("verdict")); after != before {
		t.Errorf("%q became %q", before, after)
	}
}

// TestHostileNames: names of features and tasks are the operator's, and still no markup.
func TestHostileNames(t *testing.T) {
	w := newScene()
	const hostile = `"><script>alert(1)</script><b a='`
	w.names[0], w.task.Name, w.task.Assuming, w.task.Start = hostile, hostile, hostile, "Began with "+
		hostile
	w.learn(3)
	d := w.document(t)
	if n := len(d.all(func(n *html.Node) bool { return n.Data == "script" })); n != 2 {
		t.Errorf("%d scripts", n)
	}
	d.says("weights", hostile)
	d.says("privacy", hostile, "Began with "+hostile)
}

// TestPageHasNoUserData checks that all numbers of a page come from rounds and counts, and that texts of a stage are
// not repeated.
func TestPageHasNoUserData(t *testing.T) {
	w := newScene()
	w.learn(3)
	w.stage.Doing, w.stage.Waiting = "the event of user Ada", "waiting for Ada"
	w.stage.Reports = map[string]uint64{"accepted": 1500, "Ada": 3}
	w.Stage(w.stage)
	w.Applied(service.Applied{Progress: w.progress(), Rejects: map[string]uint64{"Ada": 1}})
	page := get(t, w.handler(t, Options{}), "/").Body.String()
	if strings.Contains(page, "Ada") {
		t.Error("the page repeats what the stage made up")
	}
	w.pass(sampling)
	w.Stage(w.stage)
	w.document(t).says("outcomes", "other 3")
	alone := newScene() // whose batches alone tell of reports
	alone.Applied(service.Applied{Progress: w.progress(), BatchUsers: 4, Took: time.Second,
		Rejects: map[string]uint64{"Ada": 1}})
	alone.document(t).says("outcomes", "accepted 4", "other 1")
}

// TestHeaders: every answer is strict, also one that is an error.
func TestHeaders(t *testing.T) {
	w := newScene()
	h := w.handler(t, Options{})
	for path, code := range map[string]int{"/": 200, "/page.css": 200, "/page.js": 200, "/cursor.js": 200,
		"/charts/latency.csv": 200, "/charts/loss": 404, "/charts/none.csv": 404, "/icon.svg": 200, "/missing": 404,
		"/assets/page.html": 404} {
		r := get(t, h, path)
		if r.Code != code {
			t.Errorf("%s: %d, want %d", path, r.Code, code)
		}
		strictly(t, path, r.Header())
	}
	post := httptest.NewRecorder()
	h.ServeHTTP(post, httptest.NewRequest("POST", "/", nil))
	if post.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST /: %d", post.Code)
	}
	strictly(t, "POST /", post.Header())
}

func strictly(t *testing.T, what string, h http.Header) {
	t.Helper()
	policy := h.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'",
		"base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("%s: policy %q, want %q", what, policy, want)
		}
	}
	if regexp.MustCompile(`unsafe|\*|http|data:`).MatchString(policy) {
		t.Errorf("%s: policy %q is loose", what, policy)
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Cache-Control":   "no-store",
		"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"} {
		if h.Get(name) != want {
			t.Errorf("%s: %s: %q, want %q", what, name, h.Get(name), want)
		}
	}
}

// TestAssetsNameNoOtherOrigin: nothing is fetched from elsewhere.
func TestAssetsNameNoOtherOrigin(t *testing.T) {
	entries, err := assets.ReadDir("assets")
	if err != nil || len(entries) < 4 {
		t.Fatalf("%d assets, %v", len(entries), err)
	}
	for _, e := range entries {
		text, err := assets.ReadFile("assets/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if found := regexp.MustCompile(`(?i)(https?:)?//[a-z][^\s"'>]*|@import|url\(`).FindString(
			strings.ReplaceAll(string(text), `xmlns="http://www.w3.org/2000/svg"`, "")); found != "" {
			t.Errorf("%s names %q", e.Name(), found)
		}
	}
}
