package run

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

func loopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// fetch reads a path of a server, on a connection of its own.
func fetch(t *testing.T, at net.Listener, path string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + at.Addr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, resp.Status, err)
	}
	return string(body)
}

// follow reads a page's events to their end and answers the parts as they were last, and how many events there were.
func follow(t *testing.T, at net.Listener) func() (map[string]string, int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + at.Addr().String() + "/events")
	if err != nil {
		t.Fatal(err)
	}
	last, events, ended := map[string]string{}, 0, make(chan error, 1)
	go func() {
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			update := struct{ Parts map[string]string }{last}
			if err := json.Unmarshal([]byte(data), &update); err != nil {
				ended <- err
				return
			}
			events++
		}
		ended <- lines.Err()
	}()
	return func() (map[string]string, int) {
		t.Helper()
		if err := <-ended; err != nil {
			t.Errorf("events: %v", err)
		}
		return last, events
	}
}

// TestQuickstartPage: the quickstart's page follows the run, stays up after its end, and goes when it is told to.
func TestQuickstartPage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at, reports, ended := loopback(t), make(chan QuickstartReport, 1), make(chan error, 1)
	go func() {
		_, err := Quickstart(ctx, QuickstartConfig{Job: jobOf(t, small(t)), Dir: t.TempDir(), Logger: discard(), HTTP: at,
			Done: func(r QuickstartReport) error { reports <- r; return nil }})
		ended <- err
	}()
	select {
	case r := <-reports:
		if r.Accepted != 600 {
			t.Errorf("%d users were accepted", r.Accepted)
		}
	case err := <-ended:
		t.Fatalf("Quickstart ended before its page: %v", err)
	}
	last := follow(t, at)
	page := fetch(t, at, "/")
	for _, want := range []string{"The task has ended.", "of 2 planned", "of 600 planned", "2 steps, 600 users", "released after round 2", "<th scope=\"row\">x0</th>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for path, want := range map[string]string{"/metrics": `panlearn_stage_reports_total{outcome="accepted",task="quickstart"}`,
		"/status": `"accepted": 600`, "/v1/status": `"ended": true`, "/healthz": "ok", "/readyz": "ok"} {
		if got := fetch(t, at, path); !strings.Contains(got, want) {
			t.Errorf("%s does not have %q", path, want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Quickstart: %v", err)
	}
	if parts, _ := last(); !strings.Contains(parts["verdict"], "The task has ended.") {
		t.Errorf("the last verdict: %q", parts["verdict"])
	}
}

// TestQuickstartPageInterrupted: an open page is told that its run was stopped.
func TestQuickstartPageInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at, ended := loopback(t), make(chan error, 1)
	first := make(chan func() (map[string]string, int), 1)
	go func() {
		_, err := Quickstart(ctx, QuickstartConfig{Job: jobOf(t, small(t)), Dir: t.TempDir(), Logger: discard(), HTTP: at,
			Watch: &answering{answer: func(r uint64) {
				if r == 2 {
					first <- follow(t, at)
					cancel()
				}
			}}})
		ended <- err
	}()
	last := <-first
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Quickstart: %v", err)
	}
	if parts, _ := last(); !strings.Contains(parts["verdict"], "The learner was stopped.") {
		t.Errorf("the last verdict: %q", parts["verdict"])
	}
}

// overspent makes a state folder of a task that its budget ended after round 1: the ledger says that the round cost twice
// the budget.
func overspent(t *testing.T, dir string, id *seal.Identity) {
	t.Helper()
	memory := state.NewMemory()
	defer memory.Close()
	learned(t, jobOf(t, small(t)), memory)
	view, err := Look(t.Context(), memory)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := BuildAlgorithm(view.Task)
	if err != nil {
		t.Fatal(err)
	}
	algorithm, err := fresh.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	view.Task.LearnerKey = id.Public()
	task, err := id.Sign(view.Task)
	if err != nil {
		t.Fatal(err)
	}
	signed := &wire.Signed{}
	if err := stream.Unmarshal(task, signed); err != nil {
		t.Fatal(err)
	}
	hash := stream.HashOf(signed.Body)
	dear := view.Ledger.Charged()[0]
	dear.TaskHash, dear.Epsilon = state.Hash(hash), 2*view.Task.Plan.EpsilonBudget
	ledger := &state.Ledger{}
	open := dear
	open.Attempt, open.BatchHash = 0, state.Hash{}
	reserved, err := ledger.Reserve(open, state.Cost{Epsilon: dear.Epsilon, Delta: dear.Delta}, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := state.Checkpoint{Cursor: state.Cursor{TaskHash: state.Hash(hash)}, Task: task, Algorithm: algorithm, NextRound: []byte("round 1"), Ledger: ledger.Head()}
	spent, err := ledger.Spend(dear)
	if err != nil {
		t.Fatal(err)
	}
	end, err := id.Sign(&wire.End{Version: stream.Version, TaskHash: hash[:], LastRound: 1, Reason: service.ReasonBudget})
	if err != nil {
		t.Fatal(err)
	}
	store, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	next := state.Checkpoint{Cursor: state.Cursor{Round: 1, TaskHash: state.Hash(hash), BatchHash: dear.BatchHash, BatchSequence: 1},
		Task: task, Algorithm: algorithm, End: end, Ledger: ledger.Head()}
	if err := errors.Join(store.Commit(t.Context(), first, []state.Entry{reserved}), store.Commit(t.Context(), next, []state.Entry{spent}), store.Close()); err != nil {
		t.Fatal(err)
	}
}

// servingOn hears that a learner serves on after its task.
type servingOn struct{ on chan<- struct{} }

func (s servingOn) Enabled(context.Context, slog.Level) bool { return true }
func (s servingOn) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s servingOn) WithGroup(string) slog.Handler            { return s }
func (s servingOn) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "the task has ended; serving") {
		s.on <- struct{}{}
	}
	return nil
}

// TestRefusedBudgetIsShown: a task that its budget has ended is shown, with its model, until the learner is stopped; the
// refusal is its answer. Told to exit when done it answers at once.
func TestRefusedBudgetIsShown(t *testing.T) {
	id, dir := identity(t), t.TempDir()
	overspent(t, dir, id)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	on := make(chan struct{}, 1)
	config := LearnerConfig{Spec: small(t), StateDir: dir, Embedded: true, Identity: id, HTTP: loopback(t), Logger: slog.New(servingOn{on})}
	ended := make(chan error, 1)
	go func() { ended <- RunLearner(ctx, config) }()
	last := follow(t, config.HTTP)
	select {
	case <-on:
	case err := <-ended:
		t.Fatalf("RunLearner ended before it was told to: %v", err)
	}
	if page := fetch(t, config.HTTP, "/"); !strings.Contains(page, "The privacy budget refused round 2: the task has ended.") {
		t.Errorf("the page: %s", page)
	}
	if got := fetch(t, config.HTTP, "/readyz") + fetch(t, config.HTTP, "/v1/status"); !strings.Contains(got, service.ReasonBudget) {
		t.Errorf("status: %s", got)
	}
	var refused *state.BudgetError
	cancel()
	if err := <-ended; !errors.As(err, &refused) {
		t.Errorf("RunLearner: %v, want the budget's refusal", err)
	}
	if parts, _ := last(); !strings.Contains(parts["verdict"], "refused round 2") || !strings.Contains(parts["detail"], "Epsilon 2 of 1 is spent") {
		t.Errorf("the last verdict: %q, %q", parts["verdict"], parts["detail"])
	}
	config.HTTP, config.ExitWhenDone, config.Logger = loopback(t), true, discard()
	if err := RunLearner(t.Context(), config); !errors.As(err, &refused) {
		t.Errorf("RunLearner --exit-when-done: %v", err)
	}
	config.HTTP, config.ExitWhenDone = nil, false
	if err := RunLearner(t.Context(), config); !errors.As(err, &refused) {
		t.Errorf("RunLearner without a page: %v", err)
	}
}
