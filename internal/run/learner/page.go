package learner

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/panlearn/panlearn/internal/dashboard"
	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/wire"
)

// peersEvery is how often the page's view of other processes is renewed.
const peersEvery = time.Second

// NewBoard is the page of a planned task. Its model is the committed one.
func NewBoard(spec *task.Spec, body *wire.Task, store state.Store) (*dashboard.Board, error) {
	trust, err := manifest.Trust(body.Plan.Trust)
	if err != nil {
		return nil, err
	}
	return dashboard.New(dashboard.Config{
		Task: dashboard.Task{Name: spec.Name, Loss: spec.Model.Loss, Algorithm: body.Plan.Algorithm, Trust: trust.String(),
			HonestFraction: body.Plan.HonestFraction, Unit: model.Unit(manifest.RoundsPerUser(body.Plan) > 1),
			Parameters: manifest.Dim(body.Plan), Users: manifest.Users(body.Plan),
			Deadline: time.Duration(body.Plan.DeadlineMs) * time.Millisecond},
		Model: func(ctx context.Context) (model.Snapshot, error) {
			view, err := statedir.Look(ctx, store)
			if err != nil {
				return model.Snapshot{}, err
			}
			return view.Snapshot()
		},
	}), nil
}

// Page serves the page beside the questions of StateHandler, until shown is closed.
func Page(store state.Store, board *dashboard.Board, shown <-chan struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/", statedir.Handler(store))
	mux.Handle("/", dashboard.Handler(board, shown, dashboard.Options{}))
	return mux
}

// A PeerWatch tells a board what it cannot hear from the learner.
type PeerWatch struct {
	Board *dashboard.Board
	Conn  *natsjs.Conn
	Every time.Duration
	Stage func(context.Context) // tells the board of the stage
}

// Run watches until ctx is done.
func (w PeerWatch) Run(ctx context.Context) {
	tick := time.NewTicker(w.Every)
	defer tick.Stop()
	for {
		w.Board.Broker(w.Conn.Connected())
		w.Stage(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// onBroker tells a board which attempt at the announced round stands on the broker: all that a learner may know of its
// stage by itself.
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

// StopOf says how a learner ended.
func StopOf(ctx context.Context, err error) dashboard.Stop {
	var refused *state.BudgetError
	switch {
	case err == nil:
		return dashboard.Stop{How: dashboard.Over}
	case errors.As(err, &refused):
		return dashboard.Stop{How: dashboard.Refused, Refused: dashboard.Refusal{Round: refused.Round, Spent: refused.Spent.Epsilon,
			Total: refused.Total.Epsilon, Budget: refused.Budget.Epsilon}}
	case ctx.Err() != nil:
		return dashboard.Stop{How: dashboard.Interrupted}
	}
	return dashboard.Stop{How: dashboard.Failed}
}
