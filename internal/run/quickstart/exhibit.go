package quickstart

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/dashboard"
	"github.com/panlearn/panlearn/internal/obs"
	runlearner "github.com/panlearn/panlearn/internal/run/learner"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/wire"
)

// stageEvery is how often the page's view of the stage, which is in this process, is renewed.
const stageEvery = 100 * time.Millisecond

// An exhibit is what the quickstart shows over HTTP: the page and the endpoints of learner and stage. A nil one shows nothing.
type exhibit struct {
	board   *dashboard.Board
	metrics *obs.Learner
	mixing  stage.Observer // the stage's metrics
	reports obs.Reports
	status  atomic.Pointer[func() stage.Status] // nil until there is a stage
	shown   chan struct{}
	stop    context.CancelFunc
	serving *errgroup.Group
}

// open begins to serve on c.HTTP, if that is set.
func (c Config) open(ctx context.Context, body *wire.Task, store state.Store, conn *natsjs.Conn) (*exhibit, error) {
	if c.HTTP == nil {
		return nil, nil
	}
	e := &exhibit{shown: make(chan struct{}), serving: new(errgroup.Group)}
	var err error
	if e.board, err = runlearner.NewBoard(c.Job.Spec, body, store); err != nil {
		return nil, err
	}
	registry := obs.NewRegistry()
	if e.metrics, err = obs.NewLearner(registry, c.Job.Spec.Name); err != nil {
		return nil, err
	}
	if e.mixing, err = obs.NewStage(registry, c.Job.Spec.Name); err != nil {
		return nil, err
	}
	if err := obs.StatusMetrics(registry, c.Job.Spec.Name, e.stage); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/status", obs.Status(e.stage, &e.reports))
	mux.Handle("/", runlearner.Page(store, e.board, e.shown))
	// What is served after an interruption is that it was one.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	e.stop = stop
	watching := runlearner.PeerWatch{Board: e.board, Conn: conn, Every: stageEvery, Stage: func(context.Context) {
		if e.status.Load() != nil {
			e.board.Stage(obs.StatusOf(e.stage(), &e.reports))
		}
	}}
	e.serving.Go(func() error { return obs.Serve(serving, c.HTTP, obs.Endpoints(registry, nil, nil, mux)) })
	e.serving.Go(func() error {
		watching.Run(serving)
		return nil
	})
	return e, nil
}

// stage is the status of the stage, zero before there is one.
func (e *exhibit) stage() stage.Status {
	if get := e.status.Load(); get != nil {
		return (*get)()
	}
	return stage.Status{}
}

// mixes says that there is a stage.
func (e *exhibit) mixes(status func() stage.Status) {
	if e != nil {
		e.status.Store(&status)
	}
}

// observer watches the learner.
func (e *exhibit) observer() service.Observer {
	if e == nil {
		return nil
	}
	return runlearner.Observers{e.metrics, e.board}
}

// watch adds to what watches the stage.
func (e *exhibit) watch(o stage.Observer) stage.Observer {
	if e == nil {
		return o
	}
	return obs.Observers(e.mixing, stage.Observer{Report: e.reports.Add}, o)
}

// ended shows how the learner ended.
func (e *exhibit) ended(ctx context.Context, err error) {
	if e != nil {
		e.board.Stop(runlearner.StopOf(ctx, err))
	}
}

// linger shows how the task ended until ctx is done.
func (e *exhibit) linger(ctx context.Context, tell func() error) error {
	if e == nil {
		return nil
	}
	if err := tell(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// close tells open pages how it ended and stops serving.
func (e *exhibit) close(ctx context.Context, err error) error {
	if e == nil {
		return nil
	}
	e.ended(ctx, err) // where the learner did not begin
	close(e.shown)
	e.stop()
	return e.serving.Wait()
}
