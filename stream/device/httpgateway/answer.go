package httpgateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// How far an event is, beside the final states of the client.
const (
	waiting  = "waiting"  // for a round; in the memory of this process alone
	accepted = "accepted" // its participation is durable, and it is on its way
)

// A standing holds how far an event is.
type standing struct {
	Outcome string       `json:"outcome"`           // waiting, accepted, counted, uncounted, unknown or refused
	Final   bool         `json:"final"`             // asking again will give the same
	Round   stream.Round `json:"round"`             // last round that it took part in; 0: none
	Refused *refusal     `json:"refused,omitempty"` // why, where the outcome is refused
}

// An answer holds what is known about the event of a request.
type answer struct {
	standing
	// false: this request's event is not as declared, and counts as the zero vector; nil: it counts as nothing, since the
	// key was known, or the task is refused
	Fits *bool `json:"fits,omitempty"`
	// events of this request beyond the number that a person's report covers: in no report
	Surplus int `json:"surplus,omitempty"`
}

// A refusal is a consent.RefusedError: public, and about the task or the policy.
type refusal struct {
	Field    string `json:"field"`
	Value    string `json:"value"`
	Accepted string `json:"accepted"`
}

// A failure is the body of every answer without an outcome.
type failure struct {
	Error string `json:"error"`
}

func refusedBy(err *consent.RefusedError) standing {
	return standing{Outcome: participation.Refused.String(), Final: true, Refused: &refusal{err.Field, err.Value,
		err.Accepted}}
}

// answerOf returns the answer for what a device says of an event; final says that it says no more.
func answerOf(o device.Outcome, final bool) standing {
	a := standing{Outcome: o.State.String(), Final: final, Round: o.Round}
	switch {
	case o.State == participation.Fresh:
		a.Outcome = waiting
	case o.State == participation.Charged:
		a.Outcome = accepted
	case o.State == participation.Uncounted && !final:
		a.Outcome = waiting // for a further round
	case o.State == participation.Refused && o.Refused != nil:
		a = refusedBy(o.Refused)
		a.Round = o.Round
	}
	return a
}

func reply(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // structs of text, numbers and booleans
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}

func fail(w http.ResponseWriter, status int, text string) {
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	reply(w, status, failure{Error: text})
}

func replyAnswer(w http.ResponseWriter, a answer) {
	status := http.StatusOK
	switch {
	case a.Outcome == participation.Refused.String():
		status = http.StatusForbidden
	case !a.Final:
		status = http.StatusAccepted
	}
	reply(w, status, a)
}

// await waits until an event is settled, or durable if that is enough, or the context ends.
func (g *Gateway) await(ctx context.Context, p *pending, outcome bool) (standing, error) {
	select {
	case <-p.offered:
	default:
		select {
		case <-p.offered:
		case <-ctx.Done():
			return g.now(p.ticket)
		}
	}
	var refused *consent.RefusedError
	switch {
	case errors.As(p.err, &refused):
		return refusedBy(refused), nil
	case p.err != nil:
		return standing{}, p.err
	}
	if !outcome {
		_ = p.ticket.Accepted(ctx) // what came of it is read below
		return g.now(p.ticket)
	}
	return g.outcome(ctx, p.ticket)
}

// now returns how far an event is, without waiting.
func (g *Gateway) now(t device.Ticket) (standing, error) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	return g.outcome(ended, t)
}

// outcome waits for the outcome of an event, or returns how far it is when the context ends.
func (g *Gateway) outcome(ctx context.Context, t device.Ticket) (standing, error) {
	o, err := t.Outcome(ctx)
	switch {
	case err == nil:
		if g.ctx.Err() != nil && o.State == participation.Unknown && o.Open {
			return standing{}, errClosed // a later gateway learns more
		}
		return answerOf(o, true), nil
	case g.ctx.Err() != nil:
		return standing{}, errClosed
	case ctx.Err() != nil && errors.Is(err, ctx.Err()), errors.Is(err, device.ErrNoEvent):
		return answerOf(o, false), nil
	}
	return standing{}, err
}

// within returns the context of a request that waits for a time, or until the gateway stops.
func (g *Gateway) within(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, max(wait, 0))
	stop := context.AfterFunc(g.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
