package httpgateway

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/stream/device/consent"
)

//go:embed openapi.json
var openAPI []byte // the description of the interface below /v1, version 3.1

// maxWait is the longest that a request may ask to wait for: longer than a round, so that nobody has to poll.
const maxWait = 10 * time.Minute

// readyWait is the time that a request waits for the task to be announced, if it names no wait.
const readyWait = 5 * time.Second

func (g *Gateway) routes() []httpaccess.Route {
	return []httpaccess.Route{
		{Method: http.MethodPost, Path: g.Base + "/events", Serve: g.postEvent},
		{Method: http.MethodPost, Path: g.Base + "/batches", Serve: g.postBatch},
		{Method: http.MethodPost, Path: g.Base + "/outcomes", Serve: g.postOutcomes},
		{Method: http.MethodGet, Path: g.Base + "/task", Serve: g.getTask},
		{Method: http.MethodGet, Path: g.Base + "/openapi.json", Open: true, Serve: g.getOpenAPI},
		{Method: http.MethodGet, Path: "/healthz", Open: true,
			Serve: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }},
	}
}

// Handler serves the interface that openapi.json describes, below Base.
func (g *Gateway) Handler() http.Handler {
	return http.NewCrossOriginProtection().Handler(g.access.Mux(g.routes(), "gateway", fail))
}

func (g *Gateway) getOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(bytes.ReplaceAll(openAPI, []byte(`"/v1/`), []byte(`"`+g.Base+`/`)))
}

// A wish holds a request's options beside its body.
type wish struct {
	begun   time.Time
	wait    time.Duration
	outcome bool // it waits for outcomes, not for participation alone
}

// begin checks a request with a body of the given kind, and waits until the task is agreed to. If it returns false, it
// has written the response. It extends the deadline for writing a response by the time that the request may wait.
func (g *Gateway) begin(w http.ResponseWriter, r *http.Request, kind string) (wish, bool) {
	asked, named, err := patience(r)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return asked, false
	}
	if got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || got != kind {
		fail(w, http.StatusUnsupportedMediaType, "want the header Content-Type: "+kind)
		return asked, false
	}
	if httpaccess.Packed(r) {
		fail(w, http.StatusUnsupportedMediaType, "the body is packed: send it as it is, without a Content-Encoding")
		return asked, false
	}
	ready := asked.wait
	if !named {
		ready = readyWait
	}
	if g.ready(r.Context(), w, ready) == nil {
		return asked, false
	}
	asked.wait -= min(asked.wait, time.Since(asked.begun))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(asked.wait + writeTime))
	return asked, true
}

// writeTime is the time for an answer, beside the wait for it.
const writeTime = time.Minute

// postEvent publishes an event and reports how far it is.
func (g *Gateway) postEvent(w http.ResponseWriter, r *http.Request) {
	if !g.limiter.Allow() {
		fail(w, http.StatusTooManyRequests, "more events a second than this gateway takes")
		return
	}
	asked, ok := g.begin(w, r, "application/json")
	if !ok {
		return
	}
	body, err := readRequest(r.Body, g.held())
	if err != nil {
		fail(w, http.StatusBadRequest, "the body broke off")
		return
	}
	if body.name() == "" {
		fail(w, http.StatusBadRequest, errNoKey.Error())
		return
	}
	ctx, cancel := g.within(r.Context(), asked.wait)
	defer cancel()
	a, err := g.answer(ctx, body, asked)
	switch {
	case errors.Is(err, errFull):
		fail(w, http.StatusServiceUnavailable, errFull.Error())
	case err != nil:
		g.stopped(err)
		fail(w, http.StatusServiceUnavailable, errStopping)
	default:
		replyAnswer(w, a)
	}
}

const errStopping = "the gateway is stopping: ask again with the same key when it is back"

// stopped logs why an event has no answer.
func (g *Gateway) stopped(err error) {
	if !errors.Is(err, errClosed) && !errors.Is(err, context.Canceled) {
		g.Logger.Warn("an event without an answer", "err", err)
	}
}

// answer takes the event of a body and waits for what is asked. What the event says is worked out later: only its key
// decides when it joins.
func (g *Gateway) answer(ctx context.Context, b *body, asked wish) (answer, error) {
	p, err := g.posting(b, asked.begun)
	if err != nil {
		return answer{}, err
	}
	taken, first, err := g.take(p)
	if err != nil {
		return answer{}, err
	}
	s, err := g.await(ctx, taken, asked.outcome)
	return p.answer(s, first), err
}

// ready waits until the task is known and agreed to, and returns the agreement. If it returns nil, it has answered.
func (g *Gateway) ready(ctx context.Context, w http.ResponseWriter, wait time.Duration) *consent.Agreement {
	ctx, cancel := context.WithTimeout(ctx, max(wait, time.Millisecond))
	defer cancel()
	agreement, err := g.Device.Agreement(ctx)
	if err == nil {
		err = g.use(agreement)
	}
	var refused *consent.RefusedError
	switch {
	case err == nil:
		return agreement
	case errors.As(err, &refused):
		replyAnswer(w, answer{standing: refusedBy(refused)})
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		fail(w, http.StatusServiceUnavailable, "the task is not announced yet")
	default:
		g.Logger.Error("read task", "err", err)
		fail(w, http.StatusServiceUnavailable, "the gateway is stopping")
	}
	return nil
}

// patience reads how long a request waits, whether it says so, and for what.
func patience(r *http.Request) (asked wish, named bool, err error) {
	asked.begun = time.Now()
	query := r.URL.Query()
	if text := query.Get("wait"); text != "" {
		seconds, err := strconv.ParseUint(text, 10, 16)
		named, asked.wait = true, time.Duration(seconds)*time.Second
		if err != nil || asked.wait > maxWait {
			return asked, named, fmt.Errorf("wait: want a whole number of seconds from 0 to %.0f", maxWait.Seconds())
		}
	}
	switch query.Get("until") {
	case "", accepted:
	case "outcome":
		asked.outcome = true
	default:
		return asked, named, errors.New("until: want accepted or outcome")
	}
	return asked, named, nil
}
