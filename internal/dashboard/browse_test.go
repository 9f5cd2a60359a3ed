package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/panlearn/panlearn/internal/test/golden"
)

func scheme(dark bool) step {
	value := map[bool]string{true: "dark", false: "light"}[dark]
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: value}}})
}

func learning(w *scene) {
	w.learn(24)
	w.pass(time.Second)
	w.report(312)
}

// What the top of the page shows of each of eight states, with pictures in docs/.
var states = map[string]struct{ situation, shows string }{
	"waiting":            {"nobody joins", "Round 7 waits for reports."},
	"learning":           {"learning", "Learning."},
	"done":               {"the task is over", "The task has ended."},
	"no-stage":           {"none of the stages works", "No shuffle stage works."},
	"disk-full":          {"the broker's disk is full, as the learner has it", "The broker's disk is full."},
	"refused-publishers": {"publishers are refused", "Publishers are refused: the queue of reports is full."},
	"too-few-reports":    {"too few reports", "Too few reports come: round 7 has 312 of 500."},
	"budget-spent":       {"the budget refuses a round", "The privacy budget refused round 7: the task has ended."},
}

// TestBrowser runs the page in a real browser.
func TestBrowser(t *testing.T) {
	b := startBrowser(t)
	axe, err := os.ReadFile(filepath.Join("testdata", "axe", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		fmt.Printf(
			"NOT RUN: %s: axe on the live page: `npm ci --ignore-scripts` in internal/dashboard/testdata/axe installs it\n",
			t.Name())
	}

	b.test(t, "follows what happens", learning, func(v *tab) {
		v.live()
		v.shows("tiles", "24\nof 40 planned")
		v.do(script(`window.loaded = "once"`), click("#s-latency"))
		v.until(`document.activeElement.id === "s-latency"`)
		v.commit(3 * time.Second)
		v.announce()
		v.shows("tiles", "25\nof 40 planned")
		v.shows("latency", "3.0 s")
		if title := eval[string](v, `document.title`); title != "Round 26 of 40 · income · panlearn" {
			t.Errorf("the title is %q", title)
		}
		if now := eval[string](v,
			`[window.loaded, document.activeElement.id, document.getElementById("d-latency").open].join()`); now != "once,s-latency,true" {
			t.Errorf("after an update: loaded, focused, open: %s", now)
		}
	})

	dark := false
	for name, c := range states {
		dark = !dark
		b.test(t, "shows "+name, func(w *scene) { w.learn(3) }, func(v *tab) {
			v.shows("tiles", "3\nof 40 planned")
			v.live()
			s := situations[c.situation]
			w := newScene()
			s.play(w)
			v.clockwork.pass(w.now().Sub(v.now())) // to the same time
			v.Board.mu.Lock()
			v.Board.state = w.Board.state
			v.Board.mu.Unlock()
			v.shows("verdict", c.shows)
			v.shows("verdict", s.section)
			trouble := s.level == warn || s.level == Wrong
			v.until(fmt.Sprintf(`(getComputedStyle(document.querySelector(".state")).borderLeftWidth === "6px") === %t`,
				trouble))
			if title := eval[string](v, `document.title`); strings.Contains(title, levelWords[s.level]) != trouble {
				t.Errorf("the title says %q, the level is %s", title, s.level)
			}
			v.do(script(`for (const d of document.querySelectorAll("details")) d.open = true`))
			v.fits(340, 390, 1440)
			v.accessible(axe, 390, dark)
			if name == "learning" {
				v.accessible(axe, 390, !dark)
				v.accessible(axe, 1440, dark)
			}
			v.accessible(axe, 1440, !dark)
		})
	}

	b.test(t, "points by keyboard and by pointer", learning, func(v *tab) {
		v.live()
		at := `document.getElementById("c-accuracy")`
		v.do(script(at+`.focus()`), chromedp.KeyEvent(kb.ArrowLeft))
		v.until(at + `.getAttribute("aria-valuetext").startsWith("Round 23: recent rounds 8")`)
		v.do(chromedp.KeyEvent(kb.Home))
		v.until(at + `.getAttribute("aria-valuetext").startsWith("Round 1: ")`)
		v.until(
			`document.getElementById("o-accuracy").innerText.startsWith("Round 1: ") && document.querySelector("#c-accuracy .cursor line").getAttribute("x1") === "46"`)
		v.commit(time.Second)
		v.announce()
		v.shows("tiles", "25\nof 40 planned")
		v.shows("latency", "1.0 s")
		if now := eval[string](v, at+`.getAttribute("aria-valuetext")`); !strings.HasPrefix(now, "Round 1: ") {
			t.Errorf("while somebody reads a curve it became %q", now)
		}
		v.do(chromedp.KeyEvent(kb.Tab)) // away
		v.until(at + `.getAttribute("aria-valuetext").startsWith("Round 25: ")`)
		v.do(script(`document.getElementById("c-norm").scrollIntoView()`))
		box := eval[[]float64](v,
			`(() => { const b = document.getElementById("c-norm").getBoundingClientRect(); return [b.left + b.width * 46 / 440, b.top + 40]; })()`)
		v.do(command(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: "mouseMoved", X: box[0], Y: box[1]}))
		v.shows("o-norm", "Round 1: norm 0.161")
		v.commit(time.Second)
		v.shows("tiles", "26\nof 40 planned")
		v.until(`document.getElementById("o-norm").innerText.startsWith("Round 1: ")`) // it stays where the pointer is
	})

	b.test(t, "over rounds, users and time", learning, func(v *tab) {
		v.live()
		v.do(script(`window.loaded = "once"`), click("#by-users"))
		v.shows("latency", "users counted")
		v.until(
			`document.getElementById("by-users").getAttribute("aria-current") === "true" && !document.getElementById("by-rounds").hasAttribute("aria-current")`)
		v.do(click("#by-time"))
		v.shows("latency", "seconds before the last round")
		if !eval[bool](v, `window.loaded === "once"`) {
			t.Error("the page was loaded again")
		}
		v.do(chromedp.Reload())
		v.until(`!window.loaded`)
		v.shows("latency", "seconds before the last round")
		v.do(script(`localStorage.clear()`))
	})

	b.test(t, "works without scripts", learning, func(v *tab) {
		v.shows("verdict", "Learning.")
		v.shows("weights", "hours=40")
		if eval[bool](v, `[...document.querySelectorAll("button")].some((b) => b.checkVisibility())`) {
			t.Error("buttons without a use are shown")
		}
		v.Broker(false)
		v.shows("verdict", "The broker cannot be reached.") // the page loads itself again
	}, command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))

	b.test(t, "light and dark", learning, func(v *tab) {
		v.live()
		ground := `getComputedStyle(document.documentElement).backgroundColor`
		const light, dark = "rgb(244, 246, 245)", "rgb(16, 23, 26)"
		check := func(when, want, pressed string) { // styles and the switch follow an event, some time after it
			t.Helper()
			v.until(fmt.Sprintf(`/* %s */ %s === %q && document.getElementById("theme").getAttribute("aria-pressed") === %q`,
				when, ground, want, pressed))
		}
		check("as the system has it", dark, "true")
		v.do(scheme(false))
		check("as the system has changed", light, "false")
		v.do(click("#theme"))
		check("as chosen", dark, "true")
		v.do(script(`window.before = true`), chromedp.Reload())
		v.until(`!window.before`)
		v.live()
		check("after loading again", dark, "true")
		v.do(click("#theme"))
		check("as chosen again", light, "false")
		v.do(script(`localStorage.clear()`))
	}, scheme(true))

	b.test(t, "pauses", learning, func(v *tab) {
		v.live()
		v.do(click("#pause"), script(`window.updates = 0; new EventSource("events").onmessage = () => window.updates++`))
		v.until(`window.updates > 0`)
		v.commit(time.Second)
		before := eval[int](v, `window.updates`)
		v.until(fmt.Sprintf(`window.updates > %d`, before))
		if got := eval[string](v, `document.getElementById("tiles").innerText`); !strings.Contains(got, "24\nof 40") {
			t.Errorf("a paused page goes on: %q", got)
		}
		v.do(click("#pause"))
		v.shows("tiles", "25\nof 40 planned")
	})

	b.test(t, "connects again", learning, func(v *tab) {
		v.live()
		v.expected = "net::ERR_"
		v.server.stop()
		v.shows("link", "No connection to the learner")
		v.commit(time.Second)
		v.server.start()
		v.live()
		v.shows("tiles", "25\nof 40 planned")
	})

	b.test(t, "by keyboard", learning, func(v *tab) {
		v.live()
		var seen []string
		for range 60 {
			v.do(chromedp.KeyEvent(kb.Tab))
			at := eval[string](v, `(() => { const e = document.activeElement;
				if (e === document.body) return "";
				if (!e.matches(":focus-visible") || getComputedStyle(e).outlineStyle === "none") return "no outline: " + e.outerHTML;
				return e.id || e.getAttribute("href"); })()`)
			if at == "" || len(seen) > 0 && at == seen[0] {
				break
			}
			seen = append(seen, at)
		}
		want := []string{"#main", "pause", "theme", "by-rounds", "by-users", "by-time", "c-accuracy", "s-accuracy", "c-loss",
			"s-loss"}
		for _, c := range v.view(nil, byRounds).Charts {
			want = append(want, "c-"+c.ID, "s-"+c.ID)
		}
		want = append(want, "model.json", "model.onnx", "model.npz", "metrics", "v1/status", "v1/ledger", "v1/snapshot")
		if !slices.Equal(seen, want) {
			t.Errorf("the tab key goes to %v, want %v", seen, want)
		}
		v.do(script(`document.getElementById("s-norm").focus()`), chromedp.KeyEvent(kb.Enter))
		v.until(`document.getElementById("d-norm").open`)
		v.do(chromedp.KeyEvent(kb.Tab))
		v.until(`document.activeElement.id === "v-norm"`) // its CSV
		v.do(chromedp.KeyEvent(kb.Tab))
		v.until(`document.activeElement.id === "t-norm"`) // its table can be scrolled
		v.do(script(`document.getElementById("theme").focus()`), chromedp.KeyEvent(" "))
		v.until(`document.getElementById("theme").getAttribute("aria-pressed") === "true"`)
		v.do(script(`localStorage.clear(); document.querySelector(".skip").focus()`), chromedp.KeyEvent(kb.Enter))
		v.until(`document.activeElement.id === "main"`)
	}, scheme(false))

	b.test(t, "before anything", func(*scene) {}, func(v *tab) {
		v.live()
		v.accessible(axe, 1440, false)
	})
	if golden.Updating() {
		t.Run("pictures", b.pictures)
	}
}

// fits checks that nothing is wider than screens of some widths.
func (v *tab) fits(widths ...int64) {
	v.t.Helper()
	for _, width := range widths {
		v.do(chromedp.EmulateViewport(width, 700))
		if wide := eval[string](v, `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1
			&& !e.closest(".unseen, .scroll")).map((e) => e.tagName + "#" + e.id + "." + e.className).join()`); wide != "" || eval[bool](v, `document.documentElement.scrollWidth > innerWidth`) {
			v.t.Errorf("wider than a screen of %d: %s", width, wide)
		}
	}
}

// accessible runs axe on the page as it is.
func (v *tab) accessible(axe []byte, width int64, dark bool) {
	v.t.Helper()
	if len(axe) == 0 {
		return
	}
	v.do(chromedp.EmulateViewport(width, 900), scheme(dark), script(string(axe)), script(`window.axed = ""`))
	v.do(script(`axe.run({resultTypes: ["violations", "passes"]}).then((r) => { window.axed = JSON.stringify({passes: r.passes.length,
			violations: r.violations.map((x) => [x.id, x.impact, x.help, ...x.nodes.map((n) => n.html + " " + n.failureSummary)].join("\n"))}) })`))
	v.until(`!!window.axed`)
	var result struct {
		Passes     int
		Violations []string
	}
	if err := json.Unmarshal([]byte(eval[string](v, `window.axed`)), &result); err != nil {
		v.t.Fatal(err)
	}
	if result.Passes < 20 {
		v.t.Errorf("%d rules were passed: axe did not look at the page", result.Passes)
	}
	for _, x := range result.Violations {
		v.t.Errorf("%d wide, dark: %t: %s", width, dark, x)
	}
}

// pictures writes the pictures of docs/.
func (b browser) pictures(t *testing.T) {
	picture := func(name string, dark bool, width, height int64, play func(*scene)) {
		b.test(t, name, play, func(v *tab) {
			v.live()
			v.do(chromedp.EmulateViewport(width, height))
			shot, err := chromedp.Run(v.Context, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			golden.Picture(t, filepath.Join("..", "..", "docs", "pictures", "page-"+name+".png"), shot)
		}, scheme(dark))
	}
	long := func(w *scene) {
		eventful(w)
		w.pass(time.Second)
		w.report(312)
	}
	picture("light", false, 1200, 1180, long)
	picture("dark", true, 1200, 1180, long)
	picture("narrow", false, 390, 1180, long)
	for name, c := range states {
		picture(name, false, 900, 430, situations[c.situation].play)
	}
}
