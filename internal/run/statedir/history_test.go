package statedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner/service"
)

// endlessly returns a store of a task without an end after some rounds, all of whose models are kept.
func endlessly(t *testing.T, rounds uint64) *storetest.Memory {
	t.Helper()
	words := strings.NewReplacer("schedule: {users: 600, rounds: {max: 2}}",
		"schedule: {users: 800, continuous: adaptive}",
		"epsilon: 1,", "epsilon: 8,").Replace(runtest.Words)
	store := storetest.NewMemory()
	t.Cleanup(func() { store.Close() })
	runtest.Learned(t, runtest.Job(t, runtest.Parsed(t, words)), runtest.UpTo{Store: store, Round: rounds})
	return store
}

// get returns a handler's answer to GET; it decodes a document with status 200 into v.
func get(t *testing.T, h http.Handler, path string, v any) (code int, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
			t.Fatal(err)
		}
	}
	return w.Code, strings.TrimSpace(w.Body.String())
}

// TestEarlierModels checks that the HTTP port has the models that are kept, by round and by time, and names the
// nearest to one that is not; after a rollback it serves the earlier model, which states so, under a version of its
// own.
func TestEarlierModels(t *testing.T) {
	store := endlessly(t, 8)
	port, history := Handler(store), service.NewHistory(store)
	var newest, fourth, again model.Snapshot
	if code, text := get(t, port, "/v1/snapshot", &newest); code != http.StatusOK {
		t.Fatal(text)
	}
	if code, text := get(t, port, "/v1/snapshot?round=8", &again); code != http.StatusOK ||
		fmt.Sprint(again.Weights) != fmt.Sprint(newest.Weights) {
		t.Errorf("round 8: %d %s", code, text)
	}
	if code, text := get(t, port, "/v1/snapshot?round=4", &fourth); code != http.StatusOK || fourth.Round != 4 ||
		fourth.ModelVersion != 4 ||
		fourth.Privacy.Users >= newest.Privacy.Users || fourth.Privacy.Epsilon != newest.Privacy.Epsilon ||
		fmt.Sprint(fourth.Weights) == fmt.Sprint(newest.Weights) {
		t.Errorf("round 4: %d %s", code, text)
	}
	var h HistoryReport
	if code, _ := get(t, port, "/v1/history?newest=3", &h); code != http.StatusOK || len(h.Rounds) != 3 || !h.Older ||
		h.Rounds[2].Round != 8 {
		t.Errorf("history: %d, %+v", code, h)
	}
	at := h.Rounds[1].Time
	if code, text := get(t, port, "/v1/"+string(SnapshotAt(at)), &again); code != http.StatusOK || again.Round < 7 {
		t.Errorf("at the time of round 7: %d, round %d: %s", code, again.Round, text)
	}
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/v1/snapshot?round=1":  {http.StatusNotFound, "no model of round 1 is kept: the nearest is that of round 2"},
		"/v1/snapshot?round=99": {http.StatusNotFound, "no model of round 99 is kept: the nearest is that of round 8"},
		"/v1/snapshot?round=x":  {http.StatusBadRequest, `round "x": want a number`},
		"/v1/snapshot?at=now":   {http.StatusBadRequest, `time "now": want RFC 3339, such as 2026-11-24T12:00:00Z`},
		"/v1/history?newest=-1": {http.StatusBadRequest, `newest "-1": want a number of rounds, or 0 for all`},
		"/v1/" + string(SnapshotAt(time.Unix(1, 0))): {http.StatusNotFound,
			"no model of 1970-01-01T00:00:01Z or before is kept: the oldest is that of round 2, " +
				oldest(t, port)},
	} {
		if code, text := get(t, port, path, nil); code != want.code || text != want.text {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	// A rollback after the fact: later times have the earlier model, earlier times the model of then.
	if _, err := history.RollBack(t.Context(), 4, h.Rounds[2].Time.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, text := get(t, port, "/v1/snapshot", &again); again.RolledBackTo != 4 || again.Round != 8 ||
		again.ModelVersion != newest.ModelVersion+1 ||
		math.Abs(again.Weights[0][0]-fourth.Weights[0][0]) > 1e-12 {
		t.Errorf("after the rollback: %s", text)
	}
	for when, want := range map[time.Duration]uint64{0: 8, 2 * time.Hour: 4} {
		if _, text := get(t, port, "/v1/"+string(SnapshotAt(h.Rounds[2].Time.Add(when))), &again); again.Round != want {
			t.Errorf("%v after round 8: %s", when, text)
		}
	}
	var s Status
	if get(t, port, "/v1/status", &s); s.Rollback == nil || s.Rollback.To != 4 || s.Kept == nil || s.Kept.Round != 8 {
		t.Errorf("status: %+v, %+v", s.Rollback, s.Kept)
	}
}

// oldest returns the time of round 2.
func oldest(t *testing.T, h http.Handler) string {
	var all HistoryReport
	get(t, h, "/v1/history?newest=0", &all)
	return all.Rounds[1].Time.Format(time.RFC3339)
}

// TestChangesAreForTheSocket: the control socket rolls back and pins, with the refusals of the history in one line; the
// HTTP port does not. A task that ends is not rolled back.
func TestChangesAreForTheSocket(t *testing.T) {
	store := endlessly(t, 6)
	over, _ := ended(t, runtest.Small(t))
	post := func(h http.Handler, path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	socket := ControlHandler(store, service.NewFinisher(), service.NewHistory(store))
	for _, one := range []struct {
		h    http.Handler
		path string
		code int
		text string // a part
	}{
		{Handler(store), "/v1/rollback?round=4", http.StatusNotFound, ""},
		{Handler(store), "/v1/pin?round=4", http.StatusNotFound, ""},
		{socket, "/v1/rollback", http.StatusBadRequest, `round "": want a number`},
		{socket, "/v1/rollback?round=6", http.StatusConflict, "round 6: its model is the one that stands"},
		{socket, "/v1/rollback?round=1", http.StatusConflict, "no model of round 1 is kept: the nearest is that of round 2"},
		{socket, "/v1/pin?round=3", http.StatusOK, `"pinned":true`},
		{socket, "/v1/rollback?round=4", http.StatusOK, `"to":4`},
		{socket, "/v1/unpin?round=3", http.StatusOK, `"round":3`},
		{ControlHandler(over, service.NewFinisher(), service.NewHistory(over)), "/v1/rollback?round=2", http.StatusConflict,
			"the task has ended, and its model stays: learner snapshot --round"},
		{ControlHandler(storetest.NewMemory(), service.NewFinisher(), service.NewHistory(storetest.NewMemory())),
			"/v1/rollback?round=2", http.StatusServiceUnavailable, ""},
	} {
		if code, text := post(one.h, one.path); code != one.code || !strings.Contains(text, one.text) ||
			strings.Contains(text, "\n") {
			t.Errorf("%s: %d %s", one.path, code, text)
		}
	}
}

// TestTaskThatEndsIsNotRolledBack checks that such a task is not rolled back before its end either: its steps are
// planned for the point that it has reached.
func TestTaskThatEndsIsNotRolledBack(t *testing.T) {
	store := storetest.NewMemory()
	defer store.Close()
	runtest.Learned(t, runtest.Job(t, runtest.Spec(t, "quickstart", "schedule.users=900", "schedule.rounds.max=3")),
		runtest.UpTo{Store: store, Round: 3})
	_, err := service.NewHistory(store).RollBack(t.Context(), 2, time.Now())
	if err == nil || !strings.Contains(err.Error(), "only a task without an end") {
		at, bad := store.Load(t.Context())
		t.Errorf("%v, at round %d, %v", err, at.Cursor.Round, errors.Join(bad))
	}
}
