package many

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/stream"
)

// A board is a List that a test writes.
type board struct {
	mu      sync.Mutex
	entries []Entry
	faults  []Fault
	err     error
}

func (b *board) Tasks() ([]Entry, []Fault, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.entries), b.faults, b.err
}

// set has the list have these tasks; name:text has another text.
func (b *board) set(tasks ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = nil
	for _, t := range tasks {
		name, text, _ := strings.Cut(t, ":")
		e := Entry{Name: stream.Task(name), File: name + ".yaml"}
		copy(e.sum[:], text)
		b.entries = append(b.entries, e)
	}
}

func (b *board) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

// A role runs the members of a test's fleet: do has what each does, by name; without it a member waits for its context.
type role struct {
	mu     sync.Mutex
	do     map[stream.Task]func(ctx context.Context, seat *Seat) error
	starts map[stream.Task]int
	live   map[stream.Task]int
}

func (r *role) run(ctx context.Context, e Entry, seat *Seat) error {
	r.mu.Lock()
	r.starts[e.Name]++
	r.live[e.Name]++
	if r.live[e.Name] > 1 {
		panic("two members of one task")
	}
	do := r.do[e.Name]
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.live[e.Name]--
	}()
	if do != nil {
		return do(ctx, seat)
	}
	<-ctx.Done()
	return ctx.Err()
}

func (r *role) count(task stream.Task) (starts, live int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.starts[task], r.live[task]
}

// running starts a fleet, which ends with the test.
func running(t *testing.T, list List, do map[stream.Task]func(ctx context.Context, seat *Seat) error) (*Fleet, *role) {
	t.Helper()
	r := &role{do: do, starts: map[stream.Task]int{}, live: map[stream.Task]int{}}
	f := New(Config{List: list, Run: r.run, Starting: "It starts.", Logger: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the fleet ended with %v", err)
		}
		for task, n := range r.live {
			if n != 0 {
				t.Errorf("%s outlives its fleet", task)
			}
		}
	})
	return f, r
}

// state returns the state of a task, and the sentence.
func (f *Fleet) state(task string) (state, string) {
	for _, r := range f.Rows() {
		if r.Task == task {
			return r.State, r.Line
		}
	}
	return "", ""
}

// TestFollowsTheList: tasks are started when they come, once, stopped when they go, and started again when they come
// back; a list that cannot be read stops nothing.
func TestFollowsTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := new(board)
		list.set("ads", "churn")
		f, r := running(t, list, nil)
		after := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		after(time.Minute)
		for _, task := range []stream.Task{"ads", "churn"} {
			if starts, live := r.count(task); starts != 1 || live != 1 {
				t.Errorf("%s: %d starts, %d live", task, starts, live)
			}
		}
		list.fail(errors.New("the folder is gone"))
		after(time.Minute)
		list.fail(nil)
		list.set("churn", "fraud")
		after(time.Minute)
		if _, live := r.count("ads"); live != 0 {
			t.Error("ads runs although it was taken off the list")
		}
		if starts, live := r.count("churn"); starts != 1 || live != 1 {
			t.Errorf("churn: %d starts, %d live", starts, live)
		}
		if len(f.Rows()) != 2 {
			t.Errorf("%v", f.Rows())
		}
		list.set("ads")
		after(time.Minute)
		if starts, live := r.count("ads"); starts != 2 || live != 1 {
			t.Errorf("ads came back: %d starts, %d live", starts, live)
		}
	})
}

// TestStopsSlowly: a task that comes back while its old member still stops is not started beside it.
func TestStopsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := new(board)
		list.set("churn")
		f, r := running(t, list, map[stream.Task]func(context.Context, *Seat) error{"churn": func(ctx context.Context, _ *Seat) error {
			<-ctx.Done()
			time.Sleep(10 * time.Second)
			return ctx.Err()
		}})
		time.Sleep(5 * time.Second)
		list.set()
		time.Sleep(5 * time.Second)
		if s, line := f.state("churn"); s != Ended || !strings.Contains(line, "stops") {
			t.Errorf("%s: %s", s, line)
		}
		list.set("churn")
		time.Sleep(time.Minute)
		if starts, live := r.count("churn"); starts != 2 || live != 1 {
			t.Errorf("%d starts, %d live", starts, live)
		}
	})
}

// TestFailures: a member that fails is tried again, with waits up to a minute; one whose error lasts waits for its file;
// one that ended stays so. None of them touches the others.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := new(board)
		list.set("broken", "over", "refused", "well")
		f, r := running(t, list, map[stream.Task]func(context.Context, *Seat) error{
			"broken":  func(context.Context, *Seat) error { return errors.New("the disk is full") },
			"refused": func(context.Context, *Seat) error { return fmt.Errorf("read: %w", Lasting(errors.New("no budget"))) },
			"over":    func(context.Context, *Seat) error { return nil },
		})
		time.Sleep(time.Second / 2)
		if s, line := f.state("broken"); s != Waiting || line != "the disk is full" {
			t.Errorf("broken: %s, %s", s, line)
		}
		time.Sleep(time.Hour)
		// 1, 2, 4 ... seconds and looks every two: about 60 an hour, and not one a look, which were 1800.
		if starts, _ := r.count("broken"); starts < 55 || starts > 70 {
			t.Errorf("broken: %d starts in an hour", starts)
		}
		for task, want := range map[string]state{"over": Ended, "refused": refused, "well": Running} {
			if s, _ := f.state(task); s != want {
				t.Errorf("%s is %s, want %s", task, s, want)
			}
			if starts, _ := r.count(stream.Task(task)); starts != 1 {
				t.Errorf("%s: %d starts", task, starts)
			}
		}
		list.set("broken", "over", "refused:another text", "well:another text")
		time.Sleep(time.Minute)
		if starts, _ := r.count("refused"); starts != 2 {
			t.Errorf("refused, with another file: %d starts", starts)
		}
		if starts, live := r.count("well"); starts != 1 || live != 1 {
			t.Errorf("well, with another file: %d starts, %d live", starts, live)
		}
		if _, line := f.state("well"); !strings.Contains(line, "Its file was changed since") {
			t.Errorf("well, with another file: %s", line)
		}
	})
}

// TestEndpoints: the metrics of all members that run and of no other, the page, the list, and the endpoints of each.
func TestEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := new(board)
		list.set("ads", "broken", "starting", "churn")
		list.faults = []Fault{{File: "bad<.yaml", Err: errors.New("task line 2: <b>")}}
		shows := func(name string, wrong bool) func(context.Context, *Seat) error {
			return func(ctx context.Context, seat *Seat) error {
				seat.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "panlearn_stage_round",
					ConstLabels: prometheus.Labels{"task": name}}, func() float64 { return 7 }))
				seat.Show(Shown{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					fmt.Fprintf(w, "%s of %s", r.URL.Path, name)
				}), Line: func() (string, bool) { return "Line of " + name, wrong }, Status: func() any { return map[string]string{"task": name} }})
				<-ctx.Done()
				return ctx.Err()
			}
		}
		f, _ := running(t, list, map[stream.Task]func(context.Context, *Seat) error{"ads": shows("ads", true),
			"churn": shows("churn", false), "broken": func(context.Context, *Seat) error { return errors.New("no lock") }})
		time.Sleep(time.Second / 2)
		registry := prometheus.NewRegistry()
		if err := obs.NewFleet(registry, f.failing); err != nil {
			t.Fatal(err)
		}
		handler := f.endpoints(registry, "learners", func() error { return nil })
		for path, want := range map[string]struct {
			code int
			has  []string
			not  string
		}{
			"/metrics": {200, []string{`panlearn_stage_round{task="ads"} 7`, `panlearn_stage_round{task="churn"} 7`,
				`panlearn_fleet_task_failing{task="ads"} 0`, `panlearn_fleet_task_failing{task="broken"} 1`,
				`panlearn_fleet_task_failing{task="bad<.yaml"} 1`}, `panlearn_stage_round{task="broken"}`},
			"/healthz": {200, nil, ""},
			"/readyz":  {200, nil, ""},
			"/v1/tasks": {200, []string{`"task": "ads"`, `"line": "Line of ads"`, `"state": "waiting"`, `"line": "no lock"`,
				`"file": "bad\u003c.yaml"`, `"line": "It starts."`}, ""},
			"/status": {200, []string{`"task": "ads"`, `"task": "churn"`}, "broken"},
			"/": {200, []string{`<a href="tasks/ads/">ads</a>`, "To look at (3)", "Well (2)", "bad&lt;.yaml", "task line 2: &lt;b&gt;"},
				`<a href="tasks/broken/">`},
			"/page.css":               {200, nil, ""},
			"/tasks/ads/v1/status":    {200, []string{"/v1/status of ads"}, ""},
			"/tasks/churn/":           {200, []string{"/ of churn"}, ""},
			"/tasks/broken/readyz":    {503, []string{"no lock"}, ""},
			"/tasks/starting/metrics": {503, []string{"It starts."}, ""},
			"/tasks/nothing/":         {404, []string{"no such task"}, ""},
			"/nothing":                {404, nil, ""},
		} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			body, _ := io.ReadAll(w.Result().Body)
			if w.Code != want.code {
				t.Errorf("%s: code %d, want %d: %s", path, w.Code, want.code, body)
			}
			for _, text := range want.has {
				if !strings.Contains(string(body), text) {
					t.Errorf("%s has no %q:\n%s", path, text, body)
				}
			}
			if want.not != "" && strings.Contains(string(body), want.not) {
				t.Errorf("%s has %q:\n%s", path, want.not, body)
			}
		}
	})
}
