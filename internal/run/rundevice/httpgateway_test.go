package rundevice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/many"
	"github.com/panlearn/panlearn/internal/run/runlearner"
	"github.com/panlearn/panlearn/internal/run/runstage"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/service"
	mixing "github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// TestHTTPGateway posts events over HTTP to a gateway, stops it while some of them are on their way, and posts all of
// them to another one with the same folder: every user is counted, and none twice. No round closes before it is full,
// however slow the machine is: its deadline is as long as the test may take.
func TestHTTPGateway(t *testing.T) {
	const users, early, token = 600, 100, "token-of-the-test"
	job := runtest.Job(t, runtest.Small(t, "schedule.deadline=10m"))
	text, err := os.ReadFile(runtest.Events(t, job, users))
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(text)), "\n")
	heard, url := runtest.BrokerURL()
	config := runlearner.Config{Config: service.Config{Identity: runtest.Identity(t), Logger: heard}, Spec: job.Spec,
		StateDir: t.TempDir(),
		Embedded: true, Listen: "127.0.0.1:0", ExitWhenDone: true}
	learning, mixer := make(chan error, 1), make(chan error, 1)
	var roles sync.WaitGroup
	t.Cleanup(roles.Wait) // they use the folders, which are removed next
	roles.Go(func() { learning <- runlearner.Run(t.Context(), config) })
	var broker run.Broker
	select {
	case broker.URL = <-url:
	case err := <-learning:
		t.Fatal(err)
	}
	name := stream.Task(job.Spec.Name)
	stage := runtest.Identity(t)
	roles.Go(func() {
		mixer <- runstage.Run(t.Context(), runstage.Config{Config: mixing.Config{Task: name, Identity: stage,
			Logger: runtest.Discard()}, Broker: broker})
	})

	var log lockedBuffer
	publish := Config{Settings: device.Settings{Task: name, Bundle: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))},
		StateDir: t.TempDir(), Broker: broker}
	post := func(address, query string, i int) (outcome string, final bool) {
		body := fmt.Sprintf(`{"key": "user %d", "event": %s}`, i, rows[i])
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/v1/events"+query,
			strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return "", false
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return "", false
		}
		defer got.Body.Close()
		var a struct {
			Outcome string
			Final   bool
		}
		if err := json.NewDecoder(got.Body).Decode(&a); err != nil {
			t.Errorf("event %d: %d, %v", i, got.StatusCode, err)
		}
		return a.Outcome, a.Final
	}
	// serve runs a gateway while f does.
	serve := func(f func(address string)) device.Summary {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		done := make(chan error, 1)
		var sum device.Summary
		go func() {
			var err error
			sum, err = PublishHTTP(ctx, publish, HTTPConfig{Listener: listener, Token: token, Rate: 1e5})
			done <- err
		}()
		f(listener.Addr().String())
		stop()
		if err := <-done; err != nil {
			t.Errorf("PublishHTTP: %v", err)
		}
		return sum
	}
	all := func(n int, f func(i int)) {
		var group sync.WaitGroup
		for i := range n {
			group.Go(func() { f(i) })
		}
		group.Wait()
	}
	serve(func(address string) {
		all(early, func(i int) {
			outcome := "waiting"
			for outcome == "waiting" && !t.Failed() {
				outcome, _ = post(address, "?wait=10", i)
			}
			if outcome != "accepted" && outcome != "waiting" {
				t.Errorf("event %d of the first gateway is %s, want accepted", i, outcome)
			}
		})
		anonymous, err := http.Post("http://"+address+"/v1/events", "application/json",
			strings.NewReader(`{"key": "x", "event": {}}`))
		if err != nil || anonymous.StatusCode != http.StatusUnauthorized {
			t.Errorf("without the token: %v, %v", anonymous, err)
		} else {
			anonymous.Body.Close()
		}
	})
	metrics, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Close()
	publish.Metrics = metrics
	var scraped string
	sum := serve(func(address string) {
		defer func() { scraped = runtest.Fetch(t, metrics, "/metrics") }()
		if got := runtest.Fetch(t, metrics, "/readyz"); got != "ok\n" {
			t.Errorf("/readyz: %q", got)
		}
		all(users, func(i int) {
			outcome, final := "", false
			for !final && outcome != "unknown" && t.Context().Err() == nil && !t.Failed() {
				outcome, final = post(address, "?until=outcome&wait=10", i)
			}
			if outcome != "counted" && (final || outcome == "unknown") {
				t.Errorf("event %d is %s, want counted", i, outcome)
			}
		})
	})
	// An event that was on its way when the first gateway stopped is reported twice: when it is settled, and when it is
	// posted again.
	if sum.Counted < users || sum.Counted > users+early || sum.Events != sum.Counted {
		t.Errorf("the second gateway tells %+v, want %d counted and up to %d of them twice", sum, users, early)
	}
	if want := fmt.Sprintf("panlearn_publisher_events_total{outcome=\"counted\",task=\"%s\"} %d\n", name,
		sum.Counted); !strings.Contains(scraped, want) {
		t.Errorf("metrics lack %s:\n%s", want, scraped)
	}
	if strings.Contains(scraped, "user 1") || strings.Contains(scraped, token) {
		t.Errorf("metrics speak of events:\n%s", scraped)
	}
	if t.Failed() {
		return // the task may not end
	}
	if err := <-mixer; err != nil {
		t.Errorf("RunStage: %v", err)
	}
	if err := <-learning; err != nil {
		t.Errorf("RunLearner: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
	doc, err := statedir.Ask(t.Context(), statedir.Where{StateDir: config.StateDir}, statedir.AskStatus)
	var status statedir.Status
	if err != nil || json.Unmarshal(doc, &status) != nil || !status.Ended || status.Users != users {
		t.Errorf("status: %s, %v", doc, err)
	}
	if said := log.String(); strings.Contains(said, "user ") || strings.Contains(said, token) ||
		strings.Contains(said, "x0") {
		t.Errorf("the log speaks of events:\n%s", said)
	}

	// The folder is pinned to events with keys: a file's rows could be the same users again.
	file := publish
	file.Data, file.Source = runtest.Events(t, job, 10), "a file"
	if _, err := Publish(t.Context(), file); err == nil {
		t.Error("rows of a file were published from the folder of a gateway")
	}
}

// TestHTTPGatewayRefuses to start where anybody could publish, and where it would forget who did.
func TestHTTPGatewayRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		address string
		config  HTTPConfig
		dir     string
	}{
		"no folder":                   {"127.0.0.1:0", HTTPConfig{Token: "token-of-the-test"}, ""},
		"no token beyond loopback":    {"0.0.0.0:0", HTTPConfig{NoToken: true}, t.TempDir()},
		"no token and not said so":    {"127.0.0.1:0", HTTPConfig{}, t.TempDir()},
		"a token that can be guessed": {"127.0.0.1:0", HTTPConfig{Token: "1234"}, t.TempDir()},
	} {
		var err error
		if test.config.Listener, err = net.Listen("tcp", test.address); err != nil {
			t.Fatal(err)
		}
		c := Config{Settings: device.Settings{Task: "quickstart", Logger: runtest.Discard()}, StateDir: test.dir,
			Broker: run.Broker{ConnectConfig: natsjs.ConnectConfig{URL: "nats://127.0.0.1:1"}}}
		_, err = PublishHTTP(t.Context(), c, test.config)
		if err == nil || errors.Is(err, natsjs.ErrUnreachable) {
			t.Errorf("%s: %v, want a refusal before the broker is asked", name, err)
		}
	}
}

// TestAnswerEnds: when a task ends, a request that waits does too, and the handler is not called any more after answer
// has returned.
func TestAnswerEnds(t *testing.T) {
	var router many.Router
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	waits, calls := make(chan string), 0
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		calls++
		waits <- r.URL.Path
		<-r.Context().Done()
	})
	over := make(chan struct{})
	go func() {
		defer close(over)
		answer(ctx, &router, "ads", handler)
	}()
	post := func() int {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/tasks/ads/events?wait=600", nil))
		return w.Code
	}
	go func() {
		for post() == http.StatusNotFound { // it is not served yet
			runtime.Gosched()
		}
	}()
	if path := <-waits; path != "/v1/tasks/ads/events" {
		t.Errorf("the handler gets %s, want /v1/tasks/ads/events", path)
	}
	stop()
	<-over
	if code := post(); code != http.StatusNotFound || calls != 1 {
		t.Errorf("after the end: %d, and %d calls of the handler, want 404 and 1", code, calls)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
