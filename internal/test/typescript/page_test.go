package typescript

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/panlearn/panlearn/internal/devicepage"
	"github.com/panlearn/panlearn/internal/test/golden"
	"github.com/panlearn/panlearn/internal/test/nodejs"
	"github.com/panlearn/panlearn/internal/test/procs"
)

// TestBundle: the device in the page of `learner quickstart`, and its chunks, are what a fresh build gives. With -update
// they are written.
func TestBundle(t *testing.T) {
	folder := build(t)
	nodejs.Run(t, folder, "bundle")
	made, err := os.ReadDir(filepath.Join(folder, "build", "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != len(devicepage.Bundle) {
		t.Errorf("%d files are built: want %v", len(made), devicepage.Bundle)
	}
	for _, name := range devicepage.Bundle {
		text, err := os.ReadFile(filepath.Join(folder, "build", "bundle", name))
		if err != nil {
			t.Fatal(err)
		}
		golden.File(t, filepath.Join("..", "..", "devicepage", "assets", name), string(text))
	}
}

// A visit is a tab of a person, with what it asked for.
type visit struct {
	context.Context
	t   *testing.T
	end func()

	mu    sync.Mutex
	asked map[string]int // requests of the relay by method and last word of their path; guarded by mu
}

func visits(t *testing.T, browser context.Context, page string) *visit {
	t.Helper()
	ctx, end := chromedp.NewContext(browser)
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute) // of a machine that is stuck
	v := &visit{Context: ctx, t: t, end: func() { cancel(); end() }, asked: map[string]int{}}
	t.Cleanup(v.end)
	v.do(chromedp.EmulateViewport(900, 900))
	if err := chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok && strings.Contains(e.Request.URL, "/v1/tasks/") {
			v.mu.Lock()
			v.asked[e.Request.Method+" "+filepath.Base(e.Request.URL)]++
			v.mu.Unlock()
		}
	}); err != nil {
		t.Fatal(err)
	}
	v.do(ask(network.Enable, network.EnableParams{}), chromedp.Navigate(page))
	return v
}

func ask[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, c, params)
		return chromedp.Void{}, err
	}
}

func (v *visit) do(steps ...chromedp.Action[chromedp.Void]) {
	v.t.Helper()
	if err := chromedp.Do(v, steps...); err != nil {
		v.t.Fatalf("%v; the page says %q", err, v.text())
	}
}

func (v *visit) click(id string) { v.t.Helper(); v.do(chromedp.Click(chromedp.CSS("#" + id))) }

func (v *visit) text() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.Context), 5*time.Second) // of a page that is stuck
	defer cancel()
	said, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
	return said
}

// number returns the number that a text of the page is.
func (v *visit) number(expression string) float64 {
	v.t.Helper()
	said, err := chromedp.Run(v.Context, chromedp.Evaluate[string](expression))
	if err != nil {
		v.t.Fatalf("%s: %v", expression, err)
	}
	x, err := strconv.ParseFloat(said, 64)
	if err != nil {
		v.t.Fatalf("%s: %v", expression, err)
	}
	return x
}

// until waits for an expression to hold.
func (v *visit) until(condition string) {
	v.t.Helper()
	tick, stuck := time.NewTicker(20*time.Millisecond), time.After(40*time.Second)
	defer tick.Stop()
	for {
		// A page that is being loaded has no context for a moment.
		holds, err := chromedp.Run(v.Context, chromedp.Evaluate[bool](condition))
		if err == nil && holds {
			return
		}
		select {
		case <-stuck:
			v.t.Fatalf("never: %s: %v; the page says %q", condition, err, v.text())
		case <-tick.C:
		}
	}
}

// shows waits for a state of the page, and for words in it.
func (v *visit) shows(state string, words ...string) {
	v.t.Helper()
	v.until(fmt.Sprintf(`document.getElementById("state")?.dataset.state === %q && !document.getElementById("state").hidden`,
		state))
	for _, w := range words {
		v.until(fmt.Sprintf(`document.getElementById("state").innerText.includes(%q)`, w))
	}
}

func (v *visit) reload() {
	v.t.Helper()
	v.do(chromedp.Evaluate[chromedp.Void](`window.before = true`), chromedp.Reload())
	v.until(`!window.before && document.readyState === "complete"`)
}

// offline takes the network away from the tab, or gives it back.
func (v *visit) offline(is bool) {
	v.t.Helper()
	var all []*network.Conditions
	if is {
		all = []*network.Conditions{{Offline: true, DownloadThroughput: -1, UploadThroughput: -1}}
	}
	v.do(ask(network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: all}),
		ask(network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: is, DownloadThroughput: -1,
			UploadThroughput: -1}))
	v.until(fmt.Sprintf(`navigator.onLine === %t`, !is))
}

// reports returns how many requests the tab made with a report, and how many it made of the relay at all.
func (v *visit) reports() (posted, all int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range v.asked {
		all += n
	}
	return v.asked["POST reports"], all
}

// TestPersonTakesPart: somebody opens the live page of a quickstart that keeps a place, follows its link, reads what the
// browser computed, agrees, and takes part. The page is loaded again, goes offline and comes back, and learns that the
// report was counted; the learner counts it, too. A second tab reports nothing. A person who
// declines is not asked again; one who erases what the browser keeps is asked as if for the first time.
func TestPersonTakesPart(t *testing.T) {
	browser := chromium(t)
	ports, err := procs.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, at := procs.Within(t, 2*time.Minute), "127.0.0.1:"+strconv.Itoa(ports[0])
	learner := programs.Process(t, "quickstart", programs.Learner, "quickstart", "--events", "600", "--set",
		"schedule.rounds.max=2", "--http", at, "--relay", "--json")
	if err := learner.Start(); err != nil {
		t.Fatal(err)
	}
	type filled struct{ Round, Users, Cohort uint64 }
	until := func(what string, there func() bool) {
		t.Helper()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for !there() {
			select {
			case <-ctx.Done():
				t.Fatalf("%s: never", what)
			case <-tick.C:
			}
		}
	}
	status := func() (now filled) {
		if r, err := http.Get("http://" + at + "/status"); err == nil {
			defer r.Body.Close()
			text, _ := io.ReadAll(r.Body)
			_ = json.Unmarshal(text, &now) // empty before there is a stage
		}
		return now
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	until("the made-up users have come", func() bool {
		now := status()
		return now.Round == 3 && now.Users == now.Cohort-1
	})

	first := visits(t, browser, "http://"+at+"/")
	first.do(chromedp.Click(chromedp.CSS(".invitation a")))
	first.until(`location.pathname === "/device" && document.getElementById("offer")?.hidden === false`)
	for id, in := range map[string][2]float64{"epsilon": {0.9, 1.001}, "delta": {1e-6, 1e-6}, "factor": {2.4, 2.73}} {
		if got := first.number(`document.getElementById("` + id + `").innerText`); got < in[0] || got > in[1] {
			t.Errorf("the page says %s %v: want %v", id, got, in)
		}
	}
	first.until(`document.getElementById("send").disabled && document.querySelectorAll("#fields label").length === 9`)
	// The Close of the round is kept from this tab for a while.
	first.do(ask(network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{
		{URLPattern: "http://*:*/v1/tasks/quickstart/closes/*", Block: true}}}))
	first.click("example")
	if golden.Updating() {
		picture(t, first)
	}
	first.accessible()
	first.click("agree")
	first.click("send")
	first.shows("charged", "Your report was sent.", "bytes, sealed", "Sent", "epsilon 0.")
	size := first.number(`document.getElementById("facts").innerText.match(/(\d+) bytes, sealed/)[1]`)
	if most := first.number(`document.getElementById("bytes").textContent.match(/\d+$/)[0]`); size < 80 || size > most ||
		most > size+30 {
		t.Errorf("a report of %v bytes was sent: the page said at most %v", size, most)
	}
	first.until(`[...document.querySelectorAll("#fields input")].every((i) => i.value === "")`)
	first.reload()
	first.shows("charged", "Your report was sent.", "come back")

	second := visits(t, browser, "http://"+at+"/device")
	second.shows("elsewhere", "Another tab")

	first.offline(true)
	first.shows("charged", "offline")
	first.do(ask(network.SetBlockedURLs, network.SetBlockedURLsParams{}))
	first.offline(false)
	first.shows("counted", "Your report was counted.", "Round\n3")

	posted, _ := first.reports()
	first.end() // the person closes the tab
	second.shows("counted", "Your report was counted.", "Round\n3")
	second.click("never")
	second.shows("never", "You take no part.", "Outcome\ncounted")
	_, before := second.reports()
	second.reload()
	second.shows("never", "You take no part.")
	again, after := second.reports()
	if posted != 1 || again != 0 {
		t.Errorf("the first tab posted %d reports, the second %d: want one", posted, again)
	}
	if after != before {
		t.Errorf("a page that was told no asked the relay %d times", after-before)
	}
	second.click("erase")
	second.shows("erased", "keeps nothing")
	second.reload()
	second.until(`document.getElementById("offer").hidden === false && document.getElementById("state").hidden`)
	if !eval[bool](tab{second.Context, t}, `return new Promise((done) => {
		const opening = indexedDB.open("panlearn")
		opening.onsuccess = () => {
			const t = opening.result.transaction("charges", "readwrite")
			t.objectStore("charges").put({task: "ab", name: "other", user: "", epsilon: 0.5, delta: 1e-6, rounds: 1, most: 1, standing: 1,
				open: 0, lost: false, byUser: false, at: 7}, "ab ")
			t.oncomplete = () => { opening.result.close(); done(true) }
		}
	})`) {
		t.Error("no charge was written")
	}
	second.reload()
	second.until(`document.getElementById("spent")?.innerText.includes("another task") &&
		document.getElementById("spent").innerText.includes("0.5 so far, 1.5 with this task")`)
	second.do(chromedp.Navigate("about:blank"))

	var said struct {
		Accepted, Guests, Spare uint64
		Rejected                map[string]uint64
	}
	until("the quickstart has ended", func() bool {
		out, err := learner.Stdout()
		return err == nil && json.Unmarshal(out, &said) == nil
	})
	if said.Guests != 1 || said.Accepted < 500 || said.Spare != 0 || len(said.Rejected) != 0 {
		t.Errorf("the learner says %+v: want one guest", said)
	}
	if err := learner.Interrupt(); err != nil {
		t.Fatal(err)
	}
	if exit, err := learner.Wait(ctx); err != nil || exit.Code != 0 {
		t.Errorf("the quickstart: %v, %v", exit, err)
	}
}

// accessible runs axe on the page as it is, on a narrow screen in both schemes, and checks that nothing is wider.
func (v *visit) accessible() {
	v.t.Helper()
	axe, err := os.ReadFile(filepath.Join("..", "..", "dashboard", "testdata", "axe", "node_modules", "axe-core",
		"axe.min.js"))
	if err != nil {
		fmt.Printf("NOT RUN: %s: axe on the page: `npm ci --ignore-scripts` in internal/dashboard/testdata/axe installs it\n",
			v.t.Name())
	}
	for _, scheme := range []string{"light", "dark"} {
		v.do(chromedp.EmulateViewport(360, 900), ask(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
		if !eval[bool](tab{v.Context, v.t}, `return document.documentElement.scrollWidth <= innerWidth`) {
			v.t.Error("wider than a screen of 360")
		}
		if len(axe) == 0 {
			continue
		}
		v.do(chromedp.Evaluate[chromedp.Void](string(axe)))
		if wrong := eval[string](tab{v.Context, v.t}, `const r = await axe.run({resultTypes: ["violations", "passes"]})
			return r.passes.length < 20 ? "it did not look at the page" : r.violations.map((x) =>
				[x.id, x.help, ...x.nodes.map((n) => n.html + " " + n.failureSummary)].join("\n")).join("\n")`); wrong != "" {
			v.t.Errorf("axe, %s: %s", scheme, wrong)
		}
	}
	v.do(chromedp.EmulateViewport(900, 900))
}

// picture takes the page's picture of docs/.
func picture(t *testing.T, v *visit) {
	t.Helper()
	v.do(chromedp.EmulateViewport(760, 1880), chromedp.Evaluate[chromedp.Void](`scrollTo(0, 0)`))
	shot, err := chromedp.Run(v.Context, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	golden.Picture(t, filepath.Join("..", "..", "..", "docs", "pictures", "page-device.png"), shot)
}
