package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/obs"
)

// stageProcess starts a server that answers GET /status, and returns its address.
func stageProcess(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", answer)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func saying(s obs.StageStatus) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(s) }
}

func tell(t *testing.T, w *scene, urls ...string) {
	t.Helper()
	s, err := NewStages(urls)
	if err != nil {
		t.Fatal(err)
	}
	s.Tell(t.Context(), w.Board)
}

// TestStagesTell: of several processes the page shows the one that works, and the reports of all.
func TestStagesTell(t *testing.T) {
	w := newScene()
	idle := stageProcess(t, saying(obs.StageStatus{Task: "income", Reports: map[string]uint64{"accepted": 5,
		"made up": 2}}))
	works := stageProcess(t, saying(obs.StageStatus{Task: "income", Works: true, Round: 3, Attempt: 1, Users: 7, Cohort: 9,
		Reports: map[string]uint64{"accepted": 7}}))
	dead := httptest.NewServer(nil)
	dead.Close()
	tell(t, w, idle, works+"/", dead.URL)
	f, _ := w.look()
	if s := f.stage; !s.asked || s.silence != "" || s.status.Users != 7 || f.totals["accepted"] != 12 ||
		f.totals[other] != 2 || f.counts == nil {
		t.Errorf("%+v, totals %v", s, f.totals)
	}
	tell(t, w, dead.URL)
	if f, _ := w.look(); f.stage.silence != noAnswer || f.totals["accepted"] != 12 {
		t.Errorf("%+v, totals %v", f.stage, f.totals)
	}
}

// TestStagesThatAreNone checks that the learner goes on whatever answers at a stage's address, and that the page
// shows what it is.
func TestStagesThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   Silence
	}{
		"another task": {saying(obs.StageStatus{Task: "churn", Works: true}), anotherTask},
		"not JSON":     {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, notAStage},
		"other JSON":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"users": 4}`)) }, notAStage},
		"not found":    {http.NotFound, notAStage},
		"a redirect":   {elsewhere, notAStage},
		"too long": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "%*s", -statusSize-1, `{"task": "income"}`)
		}, notAStage},
		"without an end": {endless, notAStage},
		"breaks off":     {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, noAnswer},
		"numbers too large": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"task": "income", "users": 1e99}`))
		}, notAStage},
	} {
		t.Run(name, func(t *testing.T) {
			w := newScene()
			tell(t, w, stageProcess(t, c.answer))
			if f, _ := w.look(); f.stage.silence != c.want {
				t.Errorf("silence %q, want %q", f.stage.silence, c.want)
			}
		})
	}
}

// TestStagesOfMany: the pages of many tasks share the answer of a process that has the stages of all.
func TestStagesOfMany(t *testing.T) {
	w := newScene()
	var asked atomic.Int64
	s, err := NewStages([]string{stageProcess(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_ = json.NewEncoder(w).Encode(map[string]any{"tasks": []obs.StageStatus{{Task: "churn"},
			{Task: "income", Works: true, Users: 7}}})
	})})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for range 200 {
		s.Tell(t.Context(), w.Board)
	}
	if f, _ := w.look(); f.stage.status.Users != 7 {
		t.Errorf("%+v", f.stage)
	}
	if n, most := asked.Load(), 1+int64(time.Since(begun)/statusFreshMany); n > most {
		t.Errorf("200 pages asked %d times, want %d at most", n, most)
	}
	s.asked = s.asked.Add(-statusFreshMany)
	before := asked.Load()
	if s.Tell(t.Context(), w.Board); asked.Load() != before+1 {
		t.Error("an answer that is old is shown on")
	}
}

// elsewhere sends to a stage that is not the one whose address was given.
func elsewhere(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery == "" {
		http.Redirect(w, r, "/status?elsewhere", http.StatusFound)
		return
	}
	saying(obs.StageStatus{Task: "income"})(w, r)
}

// endless writes until the reader goes.
func endless(w http.ResponseWriter, _ *http.Request) {
	line := []byte(strings.Repeat(" ", 1<<12))
	for {
		if _, err := w.Write(line); err != nil {
			return
		}
	}
}

func TestNewStagesRefuses(t *testing.T) {
	for _, address := range []string{"", "stage:9091", "ftp://stage", "http://", "http://stage:9091/?a=b",
		"nats://stage:4222", "http://stage/#x", ":"} {
		if _, err := NewStages([]string{address}); err == nil ||
			!strings.Contains(err.Error(), "http://HOST:PORT") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := NewStages(nil); err == nil {
		t.Error("no address at all is taken")
	}
}

// TestRates checks the reports per second that are computed from a stage's counters, also after the stage was
// restarted.
func TestRates(t *testing.T) {
	w := newScene()
	say := func(accepted, refused uint64) {
		w.Stage(obs.StageStatus{Task: "income", Works: true, Reports: map[string]uint64{"accepted": accepted,
			"range": refused}})
	}
	last := func() ratePoint {
		f, _ := w.look()
		return f.rates.points[len(f.rates.points)-1]
	}
	say(1000, 10) // what was before says nothing of now
	if f, _ := w.look(); len(f.rates.points) != 0 {
		t.Fatalf("%d points", len(f.rates.points))
	}
	w.pass(2 * time.Second)
	say(1300, 14)
	if p := last(); p.seconds != 2 || p.accepted != 300 || p.refused != 4 {
		t.Errorf("%+v", p)
	}
	w.pass(sampling / 2) // sooner than a sample
	say(1301, 14)
	w.pass(sampling / 2)
	say(1400, 14)
	if p := last(); p.seconds != 1 || p.accepted != 100 || p.refused != 0 {
		t.Errorf("%+v", p)
	}
	w.pass(time.Second)
	say(7, 0) // another process
	f, _ := w.look()
	if len(f.rates.points) != 2 || f.totals["accepted"] != 7 {
		t.Errorf("%d points, totals %v", len(f.rates.points), f.totals)
	}
}
