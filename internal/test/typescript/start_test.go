package typescript

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/panlearn/panlearn/internal/devicepage"
	"github.com/panlearn/panlearn/internal/test/nodejs"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream"
)

// A served page is the device's of package devicepage beside a relay of its origin.
type servedPage struct {
	announced, away atomic.Bool // whether the page knows the task, and whether the relay does not respond
	foreign         atomic.Bool // whether the page pins another task
	asked, posted   atomic.Int64
}

func (d *deployment) page() *servedPage {
	d.t.Helper()
	to, err := url.Parse(d.relay)
	if err != nil {
		d.t.Fatal(err)
	}
	p, proxy, through := &servedPage{}, httputil.NewSingleHostReverseProxy(to), &http.Transport{}
	proxy.Transport = through
	d.t.Cleanup(through.CloseIdleConnections)
	handler := devicepage.Handler(name, func(context.Context) (stream.Hash, bool) {
		if p.foreign.Load() {
			return stream.Hash{1}, true
		}
		return d.hash, p.announced.Load()
	})
	d.served.Handle(devicepage.Path, handler)
	d.served.Handle(devicepage.Path+"/", handler)
	d.served.HandleFunc("/v1/tasks/", func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		if r.Method == http.MethodPost {
			p.posted.Add(1)
		}
		if p.away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	})
	return p
}

// TestPageStarts: what the page says and asks before somebody takes part. Of a task that is not announced it asks
// nothing, and loads itself again; with a relay that is away it says so, and goes on when that is back; of another task
// than the pinned one it takes nothing, and ends. Who takes no part from the start has sent nothing, and is asked
// nothing at a later visit, until what the browser keeps is erased. Nothing is posted.
func TestPageStarts(t *testing.T) {
	nodejs.Client(t)
	browser := chromium(t)
	d := deploy(t, 20, 20, 20, 1, "60s", schedule.Proved)
	p := d.page()
	p.away.Store(true)
	v := visits(t, browser, d.pages.URL+devicepage.Path)
	v.until(`document.body.innerText.includes("The task has not begun.") && document.getElementById("state").hidden`)
	if n := p.asked.Load(); n != 0 {
		t.Errorf("before the task is announced the relay is asked %d times", n)
	}
	p.announced.Store(true)
	v.shows("reading", "Reading the task.", "Nothing is sent.", "the task cannot be read yet", "503")
	v.until(`document.getElementById("offer").hidden`)
	p.away.Store(false)
	const offered = `!document.getElementById("offer").hidden && document.getElementById("state").hidden`
	v.until(offered)
	v.until(`document.getElementById("send").disabled`)
	v.click("never")
	v.shows("never", "You take no part.", "It has sent nothing before.")
	before := p.asked.Load()
	v.reload()
	v.shows("never", "You take no part.", "It has sent nothing before.")
	v.until(`document.getElementById("offer").hidden`)
	if n := p.asked.Load() - before; n != 0 {
		t.Errorf("who takes no part is asked about: %d requests of the relay", n)
	}
	v.click("erase")
	v.shows("erased", "keeps nothing")
	p.foreign.Store(true)
	v.reload()
	v.shows("failed", "This page cannot go on.", "task hash", "Nothing more is sent.")
	v.until(`document.getElementById("offer").hidden`)
	p.foreign.Store(false)
	v.reload()
	v.until(offered)
	if n := p.posted.Load(); n != 0 {
		t.Errorf("%d requests were posted before anybody took part", n)
	}
}
