package runlearner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/dashboard"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	core "github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// overspent makes a state folder of a task that its budget ended after round 1: in the ledger the round costs twice
// the budget.
func overspent(t *testing.T, dir string, id *seal.Identity) {
	t.Helper()
	memory := storetest.NewMemory()
	defer memory.Close()
	runtest.Learned(t, runtest.Job(t, runtest.Small(t)), memory)
	view, err := statedir.Look(t.Context(), memory)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := core.New(view.Task.Plan)
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
	var dear state.Entry
	for dear, err = range state.Charged(memory.Ledger(t.Context())) {
		break // the first round
	}
	if err != nil {
		t.Fatal(err)
	}
	dear.TaskHash, dear.Epsilon = state.Hash(hash), 2*view.Task.Plan.EpsilonBudget
	ledger := &state.Ledger{}
	open := dear
	open.Attempt, open.BatchHash = 0, state.Hash{}
	reserved, err := ledger.Reserve(open, state.Cost{Epsilon: dear.Epsilon, Delta: dear.Delta})
	if err != nil {
		t.Fatal(err)
	}
	first := state.Checkpoint{Cursor: state.Cursor{TaskHash: state.Hash(hash)}, Task: task, Algorithm: algorithm,
		NextRound: []byte("round 1"), Ledger: *ledger}
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
	next := state.Checkpoint{Cursor: state.Cursor{Round: 1, TaskHash: state.Hash(hash), BatchHash: dear.BatchHash,
		BatchSequence: 1},
		Task: task, Algorithm: algorithm, End: end, Ledger: *ledger}
	if err := errors.Join(store.Commit(t.Context(), first, []state.Entry{reserved}), store.Commit(t.Context(), next,
		[]state.Entry{spent}), store.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestPageKnowsTheBrokersCauses: a full disk that natsjs names is one on the page.
func TestPageKnowsTheBrokersCauses(t *testing.T) {
	board := dashboard.New(dashboard.Config{Task: dashboard.Task{Name: "income"}})
	done := make(chan struct{})
	defer close(done)
	page := dashboard.Handler(board, done, dashboard.Options{})
	for err, want := range map[error]string{natsjs.ErrFullDisk: "The broker&#39;s disk is full",
		natsjs.ErrNoStream: "A stream of the task does not answer the learner."} {
		board.Trouble(fmt.Errorf("%w (write error)", err).Error())
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%v: the page does not say %q", err, want)
		}
	}
}

// TestPageNamesTheStart checks that the page shows, beside what is spent, what the model that learning began with
// adds.
func TestPageNamesTheStart(t *testing.T) {
	spec := runtest.Small(t)
	body, err := runtest.Job(t, spec).Wire()
	if err != nil {
		t.Fatal(err)
	}
	store := storetest.NewMemory()
	defer store.Close()
	for want, of := range map[string]*wire.StartPrivacy{
		"a model of task last, which states epsilon 4, delta 1e-06 for its own data. For people who are in both tasks": {
			Task: "last", Epsilon: 4, Delta: 1e-6},
		"a model that states no epsilon, so it has to be public": {
			Task: "last"},
	} {
		body.Plan.Start, body.Plan.StartPrivacy = []float64{1}, of
		site, err := NewSite(spec, body, store, "", nil, Reach{})
		if err != nil {
			t.Fatal(err)
		}
		site.Board.Resumed(service.Progress{})
		w := httptest.NewRecorder()
		site.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestPageSaysOneOperator: where the declaration says that one party runs both operators of trust split the page says so,
// beside the epsilon that rests on two; where it does not, it says nothing of the kind.
func TestPageSaysOneOperator(t *testing.T) {
	for declared, says := range map[string]bool{"": false, ", one: true": true, ", one: false": false} {
		spec := runtest.Small(t, "privacy.trust=split", fmt.Sprintf("privacy.operators={leader: \"%064x\", helper: \"%064x\"%s}", 1, 2,
			declared))
		body, err := runtest.Job(t, spec).Wire()
		if err != nil {
			t.Fatal(err)
		}
		store := storetest.NewMemory()
		defer store.Close()
		site, err := NewSite(spec, body, store, "", nil, Reach{})
		if err != nil {
			t.Fatal(err)
		}
		site.Board.Resumed(service.Progress{})
		w := httptest.NewRecorder()
		site.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		const sentence = "one operator runs both here, as the task declares, so that nobody is protected from it"
		if strings.Contains(w.Body.String(), sentence) != says {
			t.Errorf("operators%s: the page says that one runs both: %t, want %t", declared, !says, says)
		}
	}
}

// TestRefusedBudgetIsShown: a task that its budget has ended is shown, with its model, until the learner is stopped;
// the refusal is its answer. Told to exit when done it answers at once.
func TestRefusedBudgetIsShown(t *testing.T) {
	id, dir := runtest.Identity(t), t.TempDir()
	overspent(t, dir, id)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	on := make(chan struct{}, 1)
	config := Config{Config: service.Config{Identity: id, Logger: runtest.OnLine("the task has ended; serving",
		func(slog.Record) { on <- struct{}{} })},
		Spec: runtest.Small(t), StateDir: dir, Embedded: true, HTTP: runtest.Loopback(t)}
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, config) }()
	last := runtest.Follow(t, config.HTTP)
	select {
	case <-on:
	case err := <-ended:
		t.Fatalf("RunLearner ended before it was told to: %v", err)
	}
	if page := runtest.Fetch(t, config.HTTP, "/"); !strings.Contains(page,
		"The privacy budget refused round 2: the task has ended.") {
		t.Errorf("the page: %s", page)
	}
	if got := runtest.Fetch(t, config.HTTP, "/readyz") + runtest.Fetch(t, config.HTTP,
		"/v1/status"); !strings.Contains(got, service.ReasonBudget) {
		t.Errorf("status: %s", got)
	}
	var refused *state.BudgetError
	cancel()
	if err := <-ended; !errors.As(err, &refused) {
		t.Errorf("RunLearner: %v, want the budget's refusal", err)
	}
	if parts, _ := last(); !strings.Contains(parts["verdict"], "refused round 2") || !strings.Contains(parts["detail"],
		"Epsilon 2 of 1 is spent") {
		t.Errorf("the last verdict: %q, %q", parts["verdict"], parts["detail"])
	}
	config.HTTP, config.ExitWhenDone, config.Logger = runtest.Loopback(t), true, runtest.Discard()
	if err := Run(t.Context(), config); !errors.As(err, &refused) {
		t.Errorf("RunLearner --exit-when-done: %v", err)
	}
	config.HTTP, config.ExitWhenDone = nil, false
	if err := Run(t.Context(), config); !errors.As(err, &refused) {
		t.Errorf("RunLearner without a page: %v", err)
	}
}
