package device_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/relay"
	"github.com/panlearn/panlearn/stream/relayclient"
)

// Every test whose devices reach the broker through world.transport can be played over a relay.
var overRelay = flag.Bool("relay", false, "devices of tests reach the broker through a relay and a cache")

// transport returns the way to the broker that devices have.
func (w *world) transport() stream.Transport {
	if _, test := w.t.(*testing.T); test && *overRelay {
		return w.relayed(newCache(w.relay()))
	}
	return w.broker
}

// relay serves the broker over HTTP.
func (w *world) relay() http.RoundTripper {
	r, err := relay.New(relay.Config{Broker: w.broker})
	must(w.t, err)
	w.t.Cleanup(r.Close)
	return direct{r}
}

// relayed returns a transport whose requests somebody makes.
func (w *world) relayed(by http.RoundTripper) stream.Transport {
	c, err := relayclient.New(relayclient.Config{URL: "http://localhost", HTTP: by})
	must(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

// direct makes requests of a handler, without a network.
type direct struct{ http.Handler }

func (d direct) RoundTrip(q *http.Request) (*http.Response, error) {
	got := httptest.NewRecorder()
	at := q.Clone(q.Context())
	at.RequestURI, at.RemoteAddr, at.Host = q.URL.RequestURI(), "127.0.0.1:1", q.URL.Host
	if at.Body == nil {
		at.Body = http.NoBody
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.ServeHTTP(got, at)
	}()
	<-done
	if err := q.Context().Err(); err != nil {
		return nil, err
	}
	return got.Result(), nil
}

// A cache is in front of a relay and keeps all that it may: immutable responses for ever, others for revalidation
// unless they are no-store, whatever the request demands.
type cache struct {
	next http.RoundTripper
	all  bool // it keeps records by their names as if they never changed, which it may not

	mu   sync.Mutex
	kept map[string]kept // guarded by mu
}

type kept struct {
	header http.Header
	body   []byte
	ever   bool
}

func newCache(next http.RoundTripper) *cache { return &cache{next: next, kept: make(map[string]kept)} }

func (c *cache) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method != http.MethodGet {
		return c.next.RoundTrip(q)
	}
	at := q.URL.String()
	c.mu.Lock()
	have, found := c.kept[at]
	c.mu.Unlock()
	if found && have.ever {
		return have.again(q), nil
	}
	if found {
		q = q.Clone(q.Context())
		q.Header.Set("If-None-Match", have.header.Get("ETag"))
	}
	r, err := c.next.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	if found && r.StatusCode == http.StatusNotModified {
		r.Body.Close()
		for name, values := range r.Header {
			have.header[name] = values
		}
		return have.again(q), nil
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if keep := r.Header.Get("Cache-Control"); r.StatusCode == http.StatusOK && !strings.Contains(keep, "no-store") {
		c.mu.Lock()
		c.kept[at] = kept{header: r.Header.Clone(), body: body, ever: c.all || strings.Contains(keep, "immutable")}
		c.mu.Unlock()
	}
	return r, nil
}

func (have kept) again(q *http.Request) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: have.header.Clone(), Body: io.NopCloser(bytes.NewReader(have.body)), ContentLength: int64(len(have.body)),
		Request: q}
}

// TestLostOpenBehindACache: the broker loses an Open and takes another under its number, and a cache between device and
// relay, which has seen the lost one, keeps all that it may. The Close of the current attempt is not taken for the lost
// one's: a device that sent to it does not call itself uncounted wrongly. A cache that keeps records by their names
// shows what would happen.
func TestLostOpenBehindACache(t *testing.T) {
	for _, keepsAll := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			w := newWorld(t, plan{rounds: 2, cohort: 2})
			between := newCache(w.relay())
			between.all = keepsAll
			way := w.relayed(between)
			hash := w.announce(ctx, 1)
			w.open(ctx, 1, 1, hash)
			_, err := way.Get(ctx, w.name.Open(1, 1)) // somebody else behind the same cache
			must(t, err)
			if !w.broker.Lose(w.name.Open(1, 1)) {
				t.Fatal("there was no Open")
			}
			other := w.openMessage(1, 1, hash)
			other.Instance[0]++ // another process
			w.put(ctx, w.name.Open(1, 1), w.stage, other)
			config := w.config(newSpy(t, participation.NewMemoryStore()))
			config.Transport = way
			cl := w.client(config)
			outcome := make(chan device.Outcome, 1)
			go func() {
				o, err := cl.Publish(ctx, participation.EventKey("a"), example(1))
				must(t, err)
				outcome <- o
			}()
			time.Sleep(time.Minute)
			if n := w.reports(1, 1); n != 1 {
				t.Errorf("keeps all %t: %d reports", keepsAll, n)
			}
			w.close(ctx, participation.Closed{Round: 1, Attempt: nth(1), Manifest: hash, Cutoff: 1 << 40})
			if keepsAll { // it would take part again
				time.Sleep(time.Minute)
				second := w.announce(ctx, 2)
				w.open(ctx, 2, 1, second)
				time.Sleep(time.Minute)
				w.close(ctx, participation.Closed{Round: 2, Attempt: nth(1), Manifest: second})
			}
			if o := soon(t, outcome); (o.State == participation.Counted) == keepsAll {
				t.Errorf("keeps all %t: told %v", keepsAll, o.State)
			}
			must(t, cl.Close())
		})
	}
}

// TestHeadersOfAParticipation: in all requests of devices that take part to the end there is no header that
// distinguishes them, and no cookie, even if the relay's responses set one.
func TestHeadersOfAParticipation(t *testing.T) {
	const people = 3
	w := newWorld(t, plan{rounds: 1, cohort: people})
	r, err := relay.New(relay.Config{Broker: w.broker})
	must(t, err)
	var mu sync.Mutex
	seen := make(map[string]map[string]bool) // header, values
	verbs := make(map[string]bool)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		mu.Lock()
		for name, values := range q.Header {
			if seen[name] == nil {
				seen[name] = make(map[string]bool)
			}
			seen[name][strings.Join(values, ", ")] = true
		}
		verbs[q.Method] = true
		mu.Unlock()
		http.SetCookie(out, &http.Cookie{Name: "session", Value: "x"})
		r.ServeHTTP(out, q)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(r.Close)
	w.play(t.Context(), func(ctx context.Context) {
		var group sync.WaitGroup
		for i := range people {
			client, err := relayclient.New(relayclient.Config{URL: server.URL})
			must(t, err)
			t.Cleanup(client.Close)
			config := w.config(participation.NewMemoryStore())
			config.Transport = client
			cl := w.client(config)
			group.Go(func() {
				o, err := cl.Publish(ctx, participation.EventKey(string(rune('a'+i))), example(1))
				must(t, errors.Join(err, cl.Close()))
				if o.State != participation.Counted {
					t.Errorf("%v", o)
				}
			})
		}
		group.Wait()
	})
	want := map[string]int{"User-Agent": 1, "Content-Type": 1, "Cache-Control": 1, "Content-Length": 1}
	for name, values := range seen {
		if len(values) > want[name] {
			t.Errorf("header %s: %v", name, values)
		}
	}
	if !verbs["GET"] || !verbs["POST"] || len(verbs) != 2 {
		t.Errorf("methods %v", verbs)
	}
}

// TestSameOverARelay plays this package's tests again with devices that go through a relay and a cache: a device over
// HTTP is the same device. Tests that time a broker's replies or check its own words are left out.
func TestSameOverARelay(t *testing.T) {
	if *overRelay {
		return // this is the run in the run
	}
	some := "^(TestPutBackTask|TestAnotherOpenOfTheSameNumber|TestCloseWithoutItsOpen|TestFaults)$"
	if longtest.Run(t, "all tests of the package over a relay") {
		some = "."
	}
	run := exec.CommandContext(t.Context(), os.Args[0], "-relay", "-test.run", some,
		"-test.skip", "^(TestABrokerThatIsBehind|TestBrokersTroubleIsNamed|Example.*)$")
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
