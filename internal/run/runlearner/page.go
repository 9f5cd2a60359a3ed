package runlearner

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"path/filepath"
	"time"

	"github.com/panlearn/panlearn/internal/dashboard"
	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/wording"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/wire"
)

// peersEvery is the period at which the page's view of other processes is renewed.
const peersEvery = time.Second

// A Site is the live page of a learner's task.
type Site struct {
	Board *dashboard.Board // the learner calls its Observer
	Log   *slog.Logger     // of what the page cannot keep; nil: none
	store state.Store
	shown chan struct{} // closed when no more is shown
}

// curves is the file of a state folder in which the page keeps its curves. Removing it loses them and nothing else.
const curves = "page.json"

// Expected returns what the plan of a job proves about the model.
func Expected(job run.Job) *dashboard.Expected {
	if job.Problem.Practical != nil || math.IsInf(job.ExcessRisk, 0) || math.IsInf(job.TrivialRisk, 0) {
		return &dashboard.Expected{}
	}
	return &dashboard.Expected{Bounded: true, Risk: job.ExcessRisk, Start: job.TrivialRisk}
}

// startOf describes what the model that a plan begins with adds to the spent budget that the page shows.
func startOf(kind wording.Kind, plan *wire.Plan) string {
	o := model.Statement{Kind: kind}.Known().From(plan).Start
	if o == nil || o.Epsilon == nil {
		return o.String()
	}
	return o.String() + " For people who are in both tasks the epsilons and deltas add up, as the model's own statement says."
}

// A Reach describes the ways of devices to the broker.
type Reach struct {
	Relayed    bool   // through a relay in this process
	Guests     uint64 // places that the made-up users leave to people in browsers
	Invitation string // path of the page on which these take part; empty: none
}

// NewSite returns the page of a planned task. Its model is the committed one. Its curves are kept in dir, the task's
// state folder, unless dir is empty; expected is nil if the plan was not made now.
func NewSite(spec *task.Spec, body *wire.Task, store state.Store, dir string, expected *dashboard.Expected,
	reach Reach) (*Site, error) {
	trust, err := manifest.Trust(body.Plan.Trust)
	if err != nil {
		return nil, err
	}
	honest, err := manifest.HonestFraction(body.Plan)
	if err != nil {
		return nil, err
	}
	kind := wording.Of(body.Plan)
	_, known := store.(statedir.Seeded)
	record := ""
	if dir != "" {
		record = filepath.Join(dir, curves)
	}
	features, err := spec.Compile()
	if err != nil {
		return nil, err
	}
	unit, err := statedir.LabelUnit(spec)
	if err != nil {
		return nil, err
	}
	devices := ""
	if reach.Relayed {
		devices = "over HTTP, through a relay in this process"
	}
	assuming := kind.Assuming(trust.String(), honest)
	if spec.Privacy.OneOperator() {
		assuming += wording.OneOperator
	}
	board := dashboard.New(dashboard.Config{
		Record: record,
		Task: dashboard.Task{Name: spec.Name, Loss: spec.Model.Loss, Algorithm: body.Plan.Algorithm, Trust: trust.String(),
			Start: startOf(kind, body.Plan), NoiseKnown: known, Assuming: assuming, Kind: kind,
			Parameters: manifest.Dim(body.Plan), Users: manifest.Users(body.Plan),
			Deadline: time.Duration(body.Plan.DeadlineMs) * time.Millisecond, Classes: len(features.Classes()), LabelUnit: unit,
			Unscored: spec.Validation == nil || spec.Validation.Off,
			Needs:    needs(body.Plan), Expected: expected, Devices: devices,
			Guests: reach.Guests, Invitation: reach.Invitation},
		Model: func(ctx context.Context) (dashboard.Model, error) {
			view, err := statedir.Look(ctx, store)
			if err != nil {
				return dashboard.Model{}, err
			}
			s, err := view.Snapshot()
			return dashboard.Model{Snapshot: s, Spread: view.Spread(s.Features)}, err
		},
	})
	return &Site{Board: board, store: store, shown: make(chan struct{})}, nil
}

// needs returns a function from the number of steps taken to the number of reporters that the rest of the plan needs:
// users, silos if they answer every round, or else reports. It returns nil for a plan without end.
func needs(plan *wire.Plan) func(uint64) uint64 {
	if manifest.Endless(plan) {
		return nil
	}
	return func(steps uint64) uint64 {
		at, ok := manifest.PhaseOf(plan, steps+1)
		if !ok {
			return 0
		}
		if plan.GetSilos() == 0 || at.Interactive() {
			return manifest.Waiting(at, steps+1)
		}
		n := manifest.Users(plan) - (steps+1-at.First)*at.Phase.GetCohort() // a silo reports again, about other records
		for _, f := range plan.GetPhases()[:at.Index] {
			n -= f.GetUsers()
		}
		return n
	}
}

// Handler serves the page beside the questions of a state folder.
func (s *Site) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/", statedir.Handler(s.store))
	mux.Handle("/", dashboard.Handler(s.Board, s.shown, dashboard.Options{}))
	return mux
}

// Peers holds what a Site polls, every Every, because the learner does not report it: the connection, the clocks and
// the stage.
type Peers struct {
	Conn  *natsjs.Conn
	Clock *run.Clock            // nil: it is not compared
	Stage func(context.Context) // passes the stage's status to the board
	Every time.Duration
}

// Watch looks at the peers until ctx is done.
func (s *Site) Watch(ctx context.Context, peers Peers) error {
	tick := time.NewTicker(peers.Every)
	defer tick.Stop()
	for {
		s.Board.Broker(peers.Conn.Connected())
		if peers.Clock != nil {
			ahead, _ := peers.Clock.Ahead()
			s.Board.Clock(ahead)
		}
		peers.Stage(ctx)
		s.keep(false)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Ended shows how the learner ended. Only the first call counts.
func (s *Site) Ended(ctx context.Context, err error) {
	s.Board.Stop(stopOf(ctx, err))
	s.keep(true)
}

// keep writes the curves where that is wanted. Without them the learner goes on.
func (s *Site) keep(last bool) {
	if err := s.Board.Save(last); err != nil && s.Log != nil {
		s.Log.Warn("the page's curves will begin from nothing after a restart", "error", err)
	}
}

// Close ends the streams of open pages. The server is stopped after it.
func (s *Site) Close() { close(s.shown) }

// onBroker returns a function that reports to a board which attempt at the announced round is on the broker: all that
// a learner can find out about its stage by itself.
func onBroker(board *dashboard.Board, conn *natsjs.Conn, name stream.Task) func(context.Context) {
	return func(ctx context.Context) {
		round := board.Unopened()
		if round == 0 || !conn.Connected() {
			return
		}
		m, err := conn.Latest(ctx, name.Opens(stream.Round(round)))
		if err != nil {
			return // none yet, or a broker that does not answer, which shows elsewhere
		}
		if at, err := stream.ParseSubject(m.Subject); err == nil {
			board.Opened(uint64(at.Round), uint64(at.Attempt))
		}
	}
}

// stopOf describes how a learner ended, from its context and its error.
func stopOf(ctx context.Context, err error) dashboard.Stop {
	var refused *state.BudgetError
	switch {
	case err == nil:
		return dashboard.Stop{How: dashboard.Over}
	case errors.As(err, &refused):
		return dashboard.Stop{How: dashboard.Refused, Refused: dashboard.Refusal{Round: refused.Round,
			Spent: refused.Spent.Epsilon,
			Total: refused.Total.Epsilon, Budget: refused.Budget.Epsilon}}
	case ctx.Err() != nil:
		return dashboard.Stop{How: dashboard.Interrupted}
	}
	return dashboard.Stop{How: dashboard.Failed}
}
