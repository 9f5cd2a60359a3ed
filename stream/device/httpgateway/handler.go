package httpgateway

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

//go:embed openapi.json
var openAPI []byte // the description of the interface, version 3.1

// maxWait is the longest that a request may ask to wait for.
const maxWait = 30 * time.Second

// defaultWait is the time that a request waits if it names none.
const defaultWait = 5 * time.Second

// maxUnfitLogged bounds the events that are logged as not fitting.
const maxUnfitLogged = 20

// A route is a method, a path, and what serves it.
type route struct {
	method, path string
	open         bool // needs no token
	serve        http.HandlerFunc
}

func (g *Gateway) routes() []route {
	return []route{
		{http.MethodPost, "/v1/events", false, g.postEvent},
		{http.MethodGet, "/v1/task", false, g.getTask},
		{http.MethodGet, "/v1/openapi.json", true, getOpenAPI},
		{http.MethodGet, "/healthz", true, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }},
	}
}

// Handler serves the interface. openapi.json describes them.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range g.routes() {
		var h http.Handler = r.serve
		if !r.open {
			h = g.authenticated(h)
		}
		mux.Handle(r.method+" "+r.path, h)
	}
	return http.NewCrossOriginProtection().Handler(mux)
}

// authenticated lets requests through that carry the token or, where there is none, that mean this machine by its
// loopback name.
func (g *Gateway) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, why := g.access.Refuse(w, r, "gateway"); status != 0 {
			fail(w, status, why)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func getOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI)
}

// postEvent publishes an event and reports how far it is.
func (g *Gateway) postEvent(w http.ResponseWriter, r *http.Request) {
	if !g.limiter.Allow() {
		fail(w, http.StatusTooManyRequests, "more events a second than this gateway takes")
		return
	}
	wait, outcome, err := patience(r)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, "want the header Content-Type: application/json")
		return
	}
	begun := time.Now()
	if !g.ready(r.Context(), w, wait) {
		return
	}
	wait -= min(wait, time.Since(begun))
	key, body, err := readRequest(r.Body, max(g.MaxBody, g.mapper.held()))
	if err != nil {
		fail(w, http.StatusBadRequest, "the body broke off")
		return
	}
	if key == "" {
		fail(w, http.StatusBadRequest, errNoKey.Error())
		return
	}
	p := g.posting(key, body, begun)
	a, err := g.offer(r.Context(), participation.EventKey(key), p.send, wait, outcome)
	unfit := p.unfit()
	if unfit != nil {
		g.note(unfit)
	}
	switch {
	case errors.Is(err, errFull):
		fail(w, http.StatusServiceUnavailable, errFull.Error())
	case err != nil:
		g.Logger.Warn("an event without an answer", "err", err)
		fail(w, http.StatusServiceUnavailable, "the gateway is stopping: ask again with the same key when it is back")
	default:
		a.Fits, a.Surplus = unfit == nil, p.surplus
		replyAnswer(w, a)
	}
}

// note logs why an event does not fit, for the operator of this gateway: neither its content nor its key.
func (g *Gateway) note(unfit error) { noteUnfit(g.Logger, &g.unfit, unfit) }

func noteUnfit(log *slog.Logger, so *atomic.Uint64, unfit error) {
	if so.Add(1) > maxUnfitLogged {
		return
	}
	column, reason := "", unfit.Error()
	var bad *task.RowError
	if errors.As(unfit, &bad) {
		column, reason = bad.Column, bad.Reason
	}
	log.Warn("an event does not fit the declaration: sent as the zero vector", "column", column, "reason", reason)
}

// offer publishes an event, unless the store has its last word. What it says is worked out later: only its key decides
// when it joins.
func (g *Gateway) offer(ctx context.Context, key participation.Key, send func(context.Context) (device.Outcome, error),
	wait time.Duration, outcome bool) (answer, error) {
	parts, err := g.Store.Read([]participation.Key{key})
	if err != nil {
		return answer{}, err
	}
	if final(parts[0]) {
		return stands(parts[0]), nil
	}
	p, err := g.publish(key, send)
	if err != nil {
		return answer{}, err
	}
	return g.await(ctx, p, key, wait, outcome)
}

// ready waits until the task is known and agreed to. If it is not, it has answered.
func (g *Gateway) ready(ctx context.Context, w http.ResponseWriter, wait time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, max(wait, time.Millisecond))
	defer cancel()
	agreement, err := g.Device.Agreement(ctx)
	if err == nil {
		err = g.mapper.use(agreement)
	}
	var refused *consent.RefusedError
	switch {
	case err == nil:
		return true
	case errors.As(err, &refused):
		replyAnswer(w, refusedBy(refused))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		fail(w, http.StatusServiceUnavailable, "the task is not announced yet")
	default:
		g.Logger.Error("read task", "err", err)
		fail(w, http.StatusServiceUnavailable, "the gateway is stopping")
	}
	return false
}

// patience reads how long a request waits, and for what.
func patience(r *http.Request) (wait time.Duration, outcome bool, err error) {
	wait = defaultWait
	query := r.URL.Query()
	if text := query.Get("wait"); text != "" {
		seconds, err := strconv.ParseUint(text, 10, 16)
		if wait = time.Duration(seconds) * time.Second; err != nil || wait > maxWait {
			return 0, false, errors.New("wait: want a whole number of seconds from 0 to 30")
		}
	}
	switch query.Get("until") {
	case "", accepted:
	case "outcome":
		outcome = true
	default:
		return 0, false, errors.New("until: want accepted or outcome")
	}
	return wait, outcome, nil
}
