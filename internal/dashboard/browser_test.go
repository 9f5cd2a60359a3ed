package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/panlearn/panlearn/internal/obs"
)

// A browser is one headless Chromium with a profile of its own.
type browser struct{ context.Context }

// startBrowser starts Chromium and stops it at the end of the test. If there is none, it prints so and skips the
// test.
func startBrowser(t *testing.T) browser {
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
		const what = "the live page in a browser: it needs Chromium (Debian's package chromium-headless-shell, or PANLEARN_CHROMIUM)"
		fmt.Printf("NOT RUN: %s: %s\n", t.Name(), what)
		t.Skip("NOT RUN: " + what)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(2*time.Minute), chromedp.Flag("lang", "en"))
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
	return browser{ctx}
}

// A step does something in a tab.
type step = chromedp.Action[chromedp.Void]

// command returns a step for a command of the protocol that chromedp does not offer.
func command[P, R any](c cdp.Command[P, R], params P) step {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, c, params)
		return chromedp.Void{}, err
	}
}

func script(source string) step { return chromedp.Evaluate[chromedp.Void](source) }

func click(selector string) step { return chromedp.Click(chromedp.CSS(selector)) }

// A tab is a tab of the browser on the page of a scene that it has to itself. Any output on the console is an error.
type tab struct {
	context.Context
	*scene
	t      *testing.T
	server *pageServer

	mu       sync.Mutex // guards console
	console  []string
	expected string // what the console may say
}

// A pageServer serves a scene's page as the programs do, and can be stopped and started again.
type pageServer struct {
	t       *testing.T
	scene   *scene
	address string
	stop    func()
}

func (s *pageServer) start() {
	s.t.Helper()
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	shown, ended := make(chan struct{}), make(chan error, 1)
	handler := Handler(s.scene.Board, shown, Options{Every: 20 * time.Millisecond})
	go func() { ended <- obs.Serve(ctx, listener, handler) }()
	s.stop = sync.OnceFunc(func() {
		close(shown)
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("serve: %v", err)
		}
	})
}

// test runs f on a tab of its own that has loaded the page of a scene; first is what was done before it was loaded.
func (b browser) test(t *testing.T, name string, play func(*scene), f func(*tab), before ...step) {
	t.Run(name, func(t *testing.T) {
		ctx, end := chromedp.NewContext(b)
		defer end()
		if err := chromedp.Do(ctx); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // of a machine that is stuck
		defer cancel()
		v := &tab{Context: ctx, scene: newScene(), t: t}
		play(v.scene)
		v.server = &pageServer{t: t, scene: v.scene, address: "127.0.0.1:0"}
		v.server.start()
		defer func() { v.server.stop() }()
		if err := chromedp.Listen(ctx, v.collect); err != nil {
			t.Fatal(err)
		}
		v.do(command(runtime.Enable, cdp.Empty{}), command(log.Enable, cdp.Empty{}), command(network.Enable,
			network.EnableParams{}),
			chromedp.EmulateViewport(1200, 900))
		v.do(before...)
		v.do(chromedp.Navigate("http://" + v.server.address))
		f(v)
		v.do(chromedp.Navigate("about:blank")) // closes its stream
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, line := range v.console {
			if v.expected == "" || !strings.Contains(line, v.expected) {
				t.Errorf("the console says: %s", line)
			}
		}
	})
}

// collect collects errors and warnings, and requests of other origins.
func (v *tab) collect(event any) {
	say := func(format string, args ...any) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.console = append(v.console, fmt.Sprintf(format, args...))
	}
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		say("exception: %v", e.ExceptionDetails)
	case *runtime.EventConsoleAPICalled:
		say("%s: %v", e.Type, e.Args)
	case *log.EventEntryAdded:
		say("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, "http://127.0.0.1:") && u != "about:blank" {
			say("a request of %s", u)
		}
	}
}

func (v *tab) do(steps ...step) {
	v.t.Helper()
	if err := chromedp.Do(v, steps...); err != nil {
		v.t.Fatal(err)
	}
}

// eval returns the value of an expression.
func eval[T any](v *tab, expression string) T {
	v.t.Helper()
	out, err := chromedp.Run(v.Context, chromedp.Evaluate[T](expression))
	if err != nil {
		v.t.Fatalf("%s: %v", expression, err)
	}
	return out
}

// until waits for an expression to hold.
func (v *tab) until(condition string) {
	v.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		// A page that is being reloaded has no context for a moment.
		if holds, err := chromedp.Run(v.Context, chromedp.Evaluate[bool](condition)); err == nil && holds {
			return
		}
		select {
		case <-v.Done():
			v.t.Fatalf("never: %s; the page says %q", condition, v.text())
		case <-tick.C:
		}
	}
}

// text returns the whole text of the page; empty if the tab has gone.
func (v *tab) text() string {
	said, _ := chromedp.Run(context.WithoutCancel(v.Context), chromedp.Evaluate[string](`document.body.innerText`))
	return said
}

// shows waits until an element contains a text.
func (v *tab) shows(id, text string) {
	v.t.Helper()
	v.until(fmt.Sprintf(`document.getElementById(%q)?.innerText.includes(%q) ?? false`, id, text))
}

// live waits until the page is connected.
func (v *tab) live() {
	v.t.Helper()
	v.until(`document.documentElement.dataset.link === "live"`)
}
