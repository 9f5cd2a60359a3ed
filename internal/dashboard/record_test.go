package dashboard

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/panlearn/panlearn/learner/service"
)

// restarted returns a scene of the same task whose board begins with the record of another's.
func restarted(t *testing.T, w *scene) *scene {
	t.Helper()
	next := newScene()
	next.pass(w.now().Add(time.Hour).Sub(next.now()))
	next.round, next.users = w.round, w.users
	c := w.config
	c.Now, c.Model = next.now, next.model
	next.Board = New(c)
	return next
}

func recorded(t *testing.T) *scene {
	t.Helper()
	w := newScene()
	w.Board.config.Record = filepath.Join(t.TempDir(), "page.json")
	return w
}

// TestCurvesSurviveARestart, with the pace, what the plan expects, and a mark; a restart without a round in between is
// one mark more.
func TestCurvesSurviveARestart(t *testing.T) {
	w := recorded(t)
	w.learn(12)
	if err := w.Save(true); err != nil {
		t.Fatal(err)
	}
	second := restarted(t, w)
	second.config.Task.Expected = nil
	second.learn(0)
	second.document(t).says("tiles", "at the pace of the last 12 rounds")
	second.document(t).says("axes", "go on over restarts, from round 1")
	third := restarted(t, second)
	third.learn(2)
	st, _ := third.look()
	if n := len(st.rounds.points); n != 14 || st.rounds.points[12].Marks.Restarts != 1 ||
		st.rounds.points[13].Marks.Restarts != 0 {
		t.Errorf("%d points, marks %+v", n, st.rounds.points[n-2:])
	}
	third.document(t).says("gradient", "learner started again")
	if c := third.chartOf(t, "gradient", byRounds); strings.Count(c.Points,
		"Before it the learner was started again.") != 1 {
		t.Errorf("what is said of the points: %s", c.Points)
	}
	if err := third.Save(true); err != nil {
		t.Fatal(err)
	}
	if d := restarted(t, third).document(t); !strings.Contains(text(d.byID("norm")), "Round 14") {
		t.Errorf("after the third start: %s", text(d.byID("norm")))
	}
}

// TestLostRecordsAreEmpty: torn at every byte, of another task or version, made up, too long, or from the time after a
// backup.
func TestLostRecordsAreEmpty(t *testing.T) {
	w := recorded(t)
	w.learn(3)
	if err := w.Save(true); err != nil {
		t.Fatal(err)
	}
	path := w.config.Record
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	points := func(record []byte) int {
		if err := os.WriteFile(path, record, 0o600); err != nil {
			t.Fatal(err)
		}
		st, _ := restarted(t, w).look()
		return len(st.rounds.points)
	}
	if n := points(whole); n != 3 {
		t.Fatalf("a whole record has %d points", n)
	}
	for n := range len(whole) {
		if got := points(whole[:n]); got != 0 {
			t.Fatalf("torn at %d: %d points", n, got)
		}
	}
	replaced := func(old, new string) []byte {
		if !bytes.Contains(whole, []byte(old)) {
			t.Fatalf("no %s in %s", old, whole)
		}
		return bytes.Replace(whole, []byte(old), []byte(new), 1)
	}
	for name, record := range map[string][]byte{
		"zeros": make([]byte, 100), "another task": replaced(`"income"`, `"churn"`),
		"another version":     replaced(`"version":1`, `"version":2`),
		"rounds that go back": replaced(`"round":2`, `"round":9`), "no stride": replaced(`"stride":1`, `"stride":0`),
		"half a point":         replaced(`"n":0`, `"n":1`),
		"no rounds in a point": replaced(`"count":1`, `"count":0`), "too long": append(bytes.Repeat([]byte(" "), recordSize),
			whole...),
		"a point and its count": replaced(`"n":0`, `"n":7,"next":{"round":9,"count":1}`),
	} {
		if n := points(record); n != 0 {
			t.Errorf("%s: %d points", name, n)
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	older := restarted(t, w)
	older.Resumed(service.Progress{Round: 2, Users: 1000, Rounds: 40})
	if st, _ := older.look(); len(st.rounds.points) != 0 || len(st.laps) != 0 {
		t.Errorf("%d points of rounds that the state folder has not seen", len(st.rounds.points))
	}
}

// TestRecordIsBounded over 10^6 rounds, and is written now and then; where it cannot be, that is an error and no more.
func TestRecordIsBounded(t *testing.T) {
	w := recorded(t)
	w.Resumed(w.progress())
	for range 1_000_000 {
		w.round++
		a := service.Applied{Progress: service.Progress{Round: w.round, Steps: w.round, Users: 500 * w.round,
			ModelNorm: 2.123456789012345},
			Attempt: 1 + w.round%2, Cohort: 500, BatchUsers: 500, NoiseStd: 0.0123456789012345, GradientNorm: 0.123456789012345,
			Took: 5123456789}
		w.Applied(a)
	}
	w.users = 500 * w.round
	if err := w.Save(false); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(w.config.Record)
	if err != nil || info.Size() > 128<<10 || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	t.Logf("%d bytes after %d rounds", info.Size(), w.round)
	st, _ := restarted(t, w).look()
	var rounds, reopened uint64
	for _, p := range st.rounds.points {
		rounds, reopened = rounds+p.Count, reopened+p.Marks.Reopened
	}
	if len(st.rounds.points) < kept/2 || rounds != w.round || reopened != w.round/2 {
		t.Errorf("%d points of %d rounds, of which %d were opened again", len(st.rounds.points), rounds, reopened)
	}
	w.Applied(service.Applied{Progress: service.Progress{Round: w.round + 1}})
	before := info.ModTime()
	w.pass(recordEvery - 1)
	if err := w.Save(false); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(w.config.Record); err != nil || !info.ModTime().Equal(before) {
		t.Errorf("written again at once: %v", err)
	}
	w.Board.config.Record = filepath.Join(t.TempDir(), "missing", "page.json")
	w.pass(1)
	if err := w.Save(false); err == nil {
		t.Error("a record in no folder was written")
	}
}

// TestRecordIsPublic checks that the record has the fields of rounds and no others.
func TestRecordIsPublic(t *testing.T) {
	w := recorded(t)
	w.learn(3)
	if err := w.Save(true); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(w.config.Record)
	if err != nil {
		t.Fatal(err)
	}
	var r struct{ Points []map[string]any }
	if err := json.Unmarshal(data, &r); err != nil || len(r.Points) != 3 {
		t.Fatalf("%v, %s", err, data)
	}
	public := map[string]bool{"round": true, "users": true, "at": true, "count": true, "took": true, "slowest": true,
		"gradient": true, "noise": true,
		"model": true, "accuracy": true, "loss": true, "marks": true}
	for field := range r.Points[0] {
		if !public[field] {
			t.Errorf("a point has the field %q", field)
		}
	}
}

// TestRecordOfTheEnd: a learner ends while the page still writes the record of a round before; what is left is the
// newest, whole.
func TestRecordOfTheEnd(t *testing.T) {
	w := recorded(t)
	w.Resumed(w.progress())
	var mu sync.Mutex // guards round
	round := uint64(0)
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for range 300 {
				mu.Lock()
				round++
				w.Applied(service.Applied{Progress: service.Progress{Round: round, Users: round}})
				mu.Unlock()
				if err := w.Save(true); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	both.Wait()
	r, err := load(w.config.Record, "income")
	last := uint64(0)
	for p := range r.all() {
		last = p.Round
	}
	if err != nil || last != round {
		t.Errorf("the record ends at round %d of %d, %v", last, round, err)
	}
}
