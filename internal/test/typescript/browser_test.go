package typescript

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/panlearn/panlearn/internal/test/nodejs"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// chromium starts a headless Chromium with a profile of its own. If there is none, it prints so and skips.
func chromium(t *testing.T) context.Context {
	t.Helper()
	browser, _ := chromiumWith(t, t.TempDir())
	return browser
}

// chromiumWith starts a headless Chromium with a profile. kill kills it, as a crash does.
func chromiumWith(t *testing.T, profile string) (browser context.Context, kill func()) {
	t.Helper()
	path := ""
	for _, name := range []string{os.Getenv("PANLEARN_CHROMIUM"), "chromium-headless-shell", "chromium",
		"chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); name != "" && err == nil {
			path = found
			break
		}
	}
	if path == "" {
		const what = "the device in a browser: it needs Chromium (Debian's package chromium-headless-shell, or PANLEARN_CHROMIUM)"
		fmt.Printf("NOT RUN: %s: %s\n", t.Name(), what)
		t.Skip("NOT RUN: " + what)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(profile),
		chromedp.WSURLReadTimeout(2*time.Minute))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, end := chromedp.NewContext(allocator)
	killed := false
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil && !killed && !errors.Is(err, context.Canceled) {
			t.Errorf("stop Chromium: %v", err)
		}
		end()
		stop()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("%s does not start: %v", path, err)
	}
	return ctx, func() {
		t.Helper()
		killed = true
		process := chromedp.FromContext(ctx).Browser.Process()
		if wrapped, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", process.Pid)); strings.Contains(path, "headless-shell") {
			for _, child := range strings.Fields(string(wrapped)) { // Debian's program is a script around the browser
				if pid, err := strconv.Atoi(child); err == nil {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
		_ = process.Kill()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for process.Signal(syscall.Signal(0)) == nil { // until its end was taken note of
			<-tick.C
		}
	}
}

// A watched relay is a proxy in front of one that keeps the headers of all requests.
type watched struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request // guarded by mu
}

func watch(t *testing.T, relay string) *watched {
	t.Helper()
	to, err := url.Parse(relay)
	if err != nil {
		t.Fatal(err)
	}
	w, proxy, through := &watched{}, httputil.NewSingleHostReverseProxy(to), &http.Transport{}
	proxy.Transport = through
	proxy.ErrorLog = log.New(io.Discard, "", 0) // requests that a tab leaves
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		w.mu.Lock()
		w.requests = append(w.requests, q.Clone(context.Background()))
		w.mu.Unlock()
		proxy.ServeHTTP(out, q)
	}))
	t.Cleanup(func() {
		w.Listener.Close()
		w.CloseClientConnections() // of requests that wait
		w.Close()
		through.CloseIdleConnections()
	})
	return w
}

// A tab is one of the browser, on the application's page.
type tab struct {
	context.Context
	t *testing.T
}

func (d *deployment) open(browser context.Context) tab {
	d.t.Helper()
	ctx, end := chromedp.NewContext(browser)
	d.t.Cleanup(end)
	v := tab{ctx, d.t}
	v.load(d.pages.URL + "/login")
	return v
}

func (v tab) load(url string) {
	v.t.Helper()
	if err := chromedp.Do(v, chromedp.Navigate(url)); err != nil {
		v.t.Fatal(err)
	}
}

// eval returns what a promise of the page becomes.
func eval[T any](v tab, body string) T {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v, 2*time.Minute) // of a machine that is stuck
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T]("(async () => {"+body+"})()", chromedp.EvalAwaitPromise))
	if err != nil {
		v.t.Fatalf("%s: %v", body, err)
	}
	return out
}

// application serves pages that load the device, on an origin with a login, under the policy for content that the docs ask
// for, and returns the relay that they ask, whose requests are kept. open, in a page, opens its device.
func (d *deployment) application() (relay *watched, open string) {
	d.t.Helper()
	folder := nodejs.CompilePage(d.t)
	relay = watch(d.t, d.relay)
	d.served.HandleFunc("/login", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src "+relay.URL)
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "of-a-person", Path: "/"}) // of all ports of the host
		fmt.Fprint(w, `<!doctype html><title>app</title><script type="module" src="/page/page.js"></script>`)
	})
	d.served.HandleFunc("/page/", func(w http.ResponseWriter, q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "worker.js") { // a worker has a policy of its own
			w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src "+relay.URL)
		}
		http.ServeFile(w, q, filepath.Join(folder, filepath.Base(q.URL.Path)))
	})
	return relay, fmt.Sprintf(`const open = async (o = {}) => window.device = await panlearn.Device.open({task: %q, transport: panlearn.relay(%q),
		store: await panlearn.indexedDB(%[1]q, {mayForget: true, ...o}), pins: {task: %[3]q}});`, name, relay.URL, hex.EncodeToString(d.hash[:]))
}

// counted returns how many users the first round's batch has.
func (d *deployment) counted() uint64 {
	d.t.Helper()
	var batch wire.Batch
	var signed wire.Signed
	if err := errors.Join(stream.Unmarshal(d.await(name.Batch(1)).Data, &signed), stream.Unmarshal(signed.Body, &batch)); err != nil {
		d.t.Fatal(err)
	}
	return batch.Users
}

// TestBrowser: a person takes part in Chromium, under the policy for content that the docs ask for and on an origin with a
// login. A second tab waits for the store and asks nothing, until the first has closed; one that was opened around the
// lock takes the store over, and the first is refused its next write. A page that is loaded again learns the outcome, and
// sends nothing new. No request of a whole participation has a cookie, a referrer or a preflight.
func TestBrowser(t *testing.T) {
	nodejs.Client(t)
	browser := chromium(t)
	d := deploy(t, 20, 20, 20, 1, "60s", schedule.Proved)
	relay, device := d.application()
	first := d.open(browser)
	if refused := eval[string](first, fmt.Sprintf(`return panlearn.indexedDB(%q).then(() => "", (e) => String(e))`,
		name)); !strings.Contains(refused, "may be deleted") {
		t.Errorf("storage that the browser may delete: %q", refused)
	}
	epsilon := eval[float64](first, device+`await open(); const t = device.submit("ann", {x0: .1, x1: .2, y: 1}); await t.accepted;
		return device.agreement.epsilon`)
	if epsilon <= 0 || epsilon > 8.01 {
		t.Errorf("the page computed epsilon %v", epsilon)
	}
	second := d.open(browser)
	if state := eval[string](second, device+`let waits = false; window.opened = open({waits: () => waits = true});
		await new Promise((done) => setTimeout(done, 300)); return waits && window.device === undefined`+" ? 'waits' : 'has it'"); state != "waits" {
		t.Errorf("the second tab %s", state)
	}
	eval[bool](first, `await device.close(); return true`)
	if state := eval[string](second, `await opened; return (await device.outcome("ann")).state`); state != "charged" {
		t.Errorf("the second tab reads %q", state)
	}
	third := d.open(browser) // in a browser that has no locks
	if state := eval[string](third, `Object.defineProperty(navigator, "locks", {value: undefined});`+device+
		`await open(); return (await device.outcome("ann")).state`); state != "charged" {
		t.Errorf("the third tab reads %q", state)
	}
	failed := eval[string](second, `await device.submit("bob", {x0: .3, x1: .1, y: -1}).outcome; return String(device.failed)`)
	if !strings.Contains(failed, "another tab") {
		t.Errorf("the second tab: %q, want one that is refused its write", failed)
	}
	d.start(d.fleet(19, 0, 0))
	third.load(d.pages.URL + "/login") // its device is gone in the middle of the round
	eval[bool](second, `await device.close(); return true`)
	outcome := eval[string](third, device+`await open(); const o = await device.submit("ann", {x0: .9, x1: .9, y: -1}).outcome;
		return o.state + " in round " + o.round`)
	if outcome != "counted in round 1" {
		t.Errorf("the page that came back was told %q", outcome)
	}
	if users := d.counted(); users != 20 {
		t.Errorf("the batch has %d users: want the fleet's 19 and this one", users)
	}
	relay.clean(t)
}

// clean checks the headers of all requests of a participation.
func (w *watched) clean(t *testing.T) {
	t.Helper()
	posts := map[string]int{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range w.requests {
		posts[q.Method+" "+filepath.Base(q.URL.Path)]++
		for _, header := range []string{"Cookie", "Referer", "Authorization"} {
			if q.Header.Get(header) != "" {
				t.Errorf("%s %s has %s", q.Method, q.URL.Path, header)
			}
		}
		if q.Method == http.MethodOptions || q.Header.Get("Origin") == "" && q.Method == http.MethodPost {
			t.Errorf("%s %s: want a request without preflight that names its origin", q.Method, q.URL.Path)
		}
	}
	t.Log(posts)
	if posts["POST reports"] == 0 || posts["POST places"] == 0 {
		t.Errorf("the proxy saw %v", posts)
	}
}

// TestBrowserTrouble: devices in a worker, in a page whose clock is two hours ahead, in one that is frozen, and in a
// browser that is killed take part once, or not: the worker is counted; nobody is charged by the wrong clock, until it is
// right; the frozen page keeps the store, asks nothing, and goes on; the browser that was killed is started again with its
// profile, learns the outcome and sends nothing new.
func TestBrowserTrouble(t *testing.T) {
	nodejs.Client(t)
	profile := t.TempDir()
	browser, kill := chromiumWith(t, profile)
	d := deploy(t, 20, 20, 20, 1, "60s", schedule.Proved)
	relay, device := d.application()

	worker := d.open(browser)
	if state := eval[string](worker, fmt.Sprintf(`const w = new Worker("/page/worker.js", {type: "module"});
		w.postMessage({task: %q, relay: %q, pin: %q, key: "worker", event: {x0: .1, x1: .2, y: 1}});
		return new Promise((done) => w.onmessage = (m) => done(m.data))`, name, relay.URL, hex.EncodeToString(d.hash[:]))); state != "accepted" {
		t.Errorf("the device in a worker: %q", state)
	}
	eval[bool](worker, `return true`)
	worker.load("about:blank") // which ends it

	ahead := d.open(browser)
	eval[bool](ahead, `const now = Date.now; window.ahead = 2 * 3600e3; Date.now = () => now() + window.ahead;`+device+
		`await open(); window.t = device.submit("ahead", {x0: .1, x1: .2, y: -1}); return true`)
	if state := eval[string](ahead, `return Promise.race([t.accepted.then(() => "charged"), new Promise((done) => setTimeout(done, 2000, "waits"))])`); state != "waits" {
		t.Errorf("two hours ahead: %q", state)
	}
	eval[bool](ahead, `window.ahead = 0; await t.accepted; await device.close(); return true`)

	frozen := d.open(browser)
	eval[bool](frozen, device+`await open(); await device.submit("frozen", {x0: .1, x1: .2, y: 1}).accepted; return true`)
	if err := chromedp.Do(frozen, ask(page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: "frozen"})); err != nil {
		t.Fatal(err)
	}
	waits := d.open(browser)
	if state := eval[string](waits, device+`let waits = false; window.opened = open({waits: () => waits = true});
		await new Promise((done) => setTimeout(done, 500)); return waits && window.device === undefined ? "waits" : "has it"`); state != "waits" {
		t.Errorf("beside a frozen page the next one %s", state)
	}
	if err := chromedp.Do(frozen, ask(page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: "active"})); err != nil {
		t.Fatal(err)
	}
	eval[bool](frozen, `await device.close(); return true`)
	if state := eval[string](waits, `await opened; const t = device.submit("killed", {x0: .2, x1: .2, y: -1}); await t.accepted;
		return (await device.outcome("frozen")).state`); state != "charged" {
		t.Errorf("of the page that was frozen the next one reads %q", state)
	}
	kill() // in the middle of the round, with the store open
	sent := relay.reports()
	d.start(d.fleet(16, 0, 0))
	if users := d.counted(); users != 20 {
		t.Errorf("the batch has %d users: want the fleet's 16 and the browser's 4", users)
	}
	again, _ := chromiumWith(t, profile)
	last := d.open(again)
	eval[bool](last, device+`for (let tries = 0; !window.device; tries++) {
			// What is left of the browser that was killed may hold its files for a moment.
			await open().catch(async (e) => {
				if (tries > 60 || !String(e).includes("backing store")) throw e;
				await new Promise((done) => setTimeout(done, 500))
			})
		}
		return true`)
	for _, key := range []string{"worker", "ahead", "frozen", "killed"} {
		if state := eval[string](last, fmt.Sprintf(`return (await device.submit(%q, {x0: .9, x1: .9, y: 1}).outcome).state`, key)); state != "counted" && (key != "killed" || state != "unknown") { // its answer may have come too late to be kept
			t.Errorf("%s was told %q after the browser was killed", key, state)
		}
	}
	if now := relay.reports(); now > sent {
		t.Errorf("%d reports were posted, and %d before the browser was killed", now, sent)
	}
	relay.clean(t)
}

// reports returns how many reports were posted.
func (w *watched) reports() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range w.requests {
		if q.Method == http.MethodPost && filepath.Base(q.URL.Path) == "reports" {
			n++
		}
	}
	return n
}
