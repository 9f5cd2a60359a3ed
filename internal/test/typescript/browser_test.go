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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/panlearn/panlearn/internal/test/nodejs"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

// chromium starts a headless Chromium with a profile of its own. Where there is none, it says so and skips.
func chromium(t *testing.T) context.Context {
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
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(2*time.Minute))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("stop Chromium: %v", err)
		}
		end()
		stop()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("%s does not start: %v", path, err)
	}
	return ctx
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

func (v tab) load(page string) {
	v.t.Helper()
	if err := chromedp.Do(v, chromedp.Navigate(page)); err != nil {
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

// TestBrowser: a person takes part in Chromium, under the policy for content that the docs ask for and on an origin with a
// login; a second tab takes the store over and the first is refused its next write; a page that is loaded again learns
// the outcome, and sends nothing new. No request of a whole participation has a cookie, a referrer or a preflight.
func TestBrowser(t *testing.T) {
	folder, _ := nodejs.Client(t)
	browser := chromium(t)
	d := deploy(t, 20, 20, 20, 1, "60s", schedule.Proved)
	nodejs.Run(t, folder, "build:page")
	relay := watch(t, d.relay)
	d.served.HandleFunc("/login", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src "+relay.URL)
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "of-a-person", Path: "/"}) // of all ports of the host
		fmt.Fprint(w, `<!doctype html><title>app</title><script type="module" src="/page.js"></script>`)
	})
	d.served.HandleFunc("/page.js", func(w http.ResponseWriter, q *http.Request) {
		http.ServeFile(w, q, filepath.Join(folder, "build", "page.js"))
	})
	device := fmt.Sprintf(`const open = async () => window.device = await panlearn.Device.open({task: %q, transport: panlearn.relay(%q),
		store: await panlearn.indexedDB(%[1]q, {mayForget: true}), pins: {task: %[3]q}});`, name, relay.URL, hex.EncodeToString(d.hash[:]))
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
	if state := eval[string](second, device+`await open(); return (await device.outcome("ann")).state`); state != "charged" {
		t.Errorf("the second tab reads %q", state)
	}
	failed := eval[string](first, `await device.submit("bob", {x0: .3, x1: .1, y: -1}).outcome; return String(device.failed)`)
	if !strings.Contains(failed, "another tab") {
		t.Errorf("the first tab: %q, want one that is refused its write", failed)
	}
	d.start(d.fleet(19, 0, 0))
	second.load(d.pages.URL + "/login") // its device is gone in the middle of the round
	outcome := eval[string](second, device+`await open(); const o = await device.submit("ann", {x0: .9, x1: .9, y: -1}).outcome;
		return o.state + " in round " + o.round`)
	if outcome != "counted in round 1" {
		t.Errorf("the page that came back was told %q", outcome)
	}
	var batch wire.Batch
	var signed wire.Signed
	if err := errors.Join(stream.Unmarshal(d.await(name.Batch(1)).Data, &signed), stream.Unmarshal(signed.Body, &batch)); err != nil ||
		batch.Users != 20 {
		t.Errorf("the batch has %d users, %v: want the fleet's 19 and this one", batch.Users, err)
	}
	posts := map[string]int{}
	relay.mu.Lock()
	defer relay.mu.Unlock()
	for _, q := range relay.requests {
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
