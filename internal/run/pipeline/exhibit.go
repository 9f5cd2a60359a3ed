package pipeline

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/run/runlearner"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// stageEvery is the period at which the page's view of the stage, which is in this process, is renewed.
const stageEvery = 100 * time.Millisecond

// An exhibit watches learner and stage, and shows them over HTTP where that is wanted.
type exhibit struct {
	site    *runlearner.Site
	learner service.Observer
	stage   stage.Observer
	reports obs.Reports
	status  atomic.Pointer[func() stage.Status] // nil until there is a stage
	serving errgroup.Group
	stop    context.CancelFunc
}

// open begins to serve on c.HTTP, if that is set.
func (c Config) open(ctx context.Context, conn *natsjs.Conn) (*exhibit, error) {
	site, err := runlearner.NewSite(c.Spec, c.Body, c.Shown, c.Curves, c.Expected, c.Relay)
	if err != nil {
		return nil, err
	}
	registry := obs.NewRegistry()
	learning, err := obs.NewLearner(registry, c.Spec.Name)
	if err != nil {
		return nil, err
	}
	mixing, err := obs.NewStage(registry, c.Spec.Name)
	if err != nil {
		return nil, err
	}
	// What is served after an interruption is that it was one.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	e := &exhibit{site: site, learner: runlearner.Observers{learning, site.Board}, stop: stop}
	e.stage = obs.Observers(mixing, stage.Observer{Report: e.reports.Add, Fill: c.Fill})
	if err := obs.StatusMetrics(registry, c.Spec.Name, e.current); err != nil {
		stop()
		return nil, err
	}
	if c.HTTP == nil {
		return e, nil
	}
	mux := http.NewServeMux()
	mux.Handle("/status", obs.Status(e.current, &e.reports, nil))
	mux.Handle("/", site.Handler())
	site.Serve(serving, &e.serving, c.HTTP, obs.Endpoints(registry, nil, nil, mux), runlearner.Peers{Conn: conn,
		Every: stageEvery,
		Stage: func(context.Context) {
			if e.status.Load() != nil {
				site.Board.Stage(obs.StatusOf(e.current(), &e.reports))
			}
		}})
	return e, nil
}

// current returns the status of the stage, zero before there is one.
func (e *exhibit) current() stage.Status {
	if get := e.status.Load(); get != nil {
		return (*get)()
	}
	return stage.Status{}
}

// close shows open pages how the learner ended and stops serving.
func (e *exhibit) close(ctx context.Context, err error) error {
	e.site.Ended(ctx, err) // where the learner did not begin
	e.site.Close()
	e.stop()
	return e.serving.Wait()
}
