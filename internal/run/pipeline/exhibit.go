package pipeline

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/panlearn/panlearn/internal/devicepage"
	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/observe"
	"github.com/panlearn/panlearn/internal/run/runlearner"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/relay"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
	"github.com/panlearn/panlearn/stream/wire"
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
	relayed *relay.Relay                        // for browsers; nil: none
	serving errgroup.Group
	stop    context.CancelFunc
}

// open begins to serve on c.HTTP, if that is set. Browsers go over the connection of devices.
func (c Config) open(ctx context.Context, name stream.Task, conn *natsjs.Conn, devices relay.Broker) (*exhibit, error) {
	reach := runlearner.Reach{Relayed: c.Relay}
	if c.Guests > 0 {
		reach.Guests, reach.Invitation = c.Guests, devicepage.Path
	}
	site, err := runlearner.NewSite(c.Spec, c.Body, c.Shown, c.Curves, c.Expected, reach)
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
	e := &exhibit{site: site, learner: observe.All(learning.Observer(), site.Board.Observer()), stop: stop}
	e.stage = observe.All(mixing, stage.Observer{Report: e.reports.Add, Fill: c.Fill})
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
	if c.Guests > 0 {
		if err := e.invite(mux, name, c, devices); err != nil {
			stop()
			return nil, err
		}
	}
	peers := runlearner.Peers{Conn: conn, Every: stageEvery, Stage: func(context.Context) {
		if e.status.Load() != nil {
			site.Board.Stage(obs.StatusOf(e.current(), &e.reports))
		}
	}}
	e.serving.Go(func() error { return obs.Serve(serving, c.HTTP, obs.Endpoints(registry, nil, nil, mux)) })
	e.serving.Go(func() error { return site.Watch(serving, peers) })
	return e, nil
}

// invite has the mux serve the page of a device, and a relay for it. They share an origin here, which a deployment does
// not want: who serves the page is trusted, and a relay is not. In this process they are one anyhow, a browser needs no
// list of origins, and a person opens one address. A relay by itself has no pages.
func (e *exhibit) invite(mux *http.ServeMux, name stream.Task, c Config, devices relay.Broker) (err error) {
	at, ok := c.HTTP.Addr().(*net.TCPAddr)
	if !ok || !at.IP.IsLoopback() {
		return fmt.Errorf("guests on %s: a browser on another machine keeps a device's store only with TLS", c.HTTP.Addr())
	}
	origins := []string{"http://" + at.String(), fmt.Sprintf("http://localhost:%d", at.Port)}
	if e.relayed, err = relay.New(relay.Config{Broker: devices, Tasks: []stream.Task{name}, Origins: origins,
		Logger: c.Logger}); err != nil {
		return err
	}
	page := devicepage.Handler(name, func(ctx context.Context) (stream.Hash, bool) {
		var signed wire.Signed
		m, err := devices.Get(ctx, name.Task())
		if err != nil || stream.Unmarshal(m.Data, &signed) != nil {
			return stream.Hash{}, false
		}
		return stream.HashOf(signed.Body), true
	})
	mux.Handle(devicepage.Path, page)
	mux.Handle(devicepage.Path+"/", page)
	mux.Handle(relayhttp.Path, e.relayed)
	return nil
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
	if e.relayed != nil {
		e.relayed.Close() // waiting requests end at once
	}
	e.stop()
	return e.serving.Wait()
}
