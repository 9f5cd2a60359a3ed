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

// An answer holds what is known about an event.
type answer struct {
	Outcome string       `json:"outcome"` // waiting, accepted, counted, uncounted, unknown or refused
	Final   bool         `json:"final"`   // asking again will give the same
	Round   stream.Round `json:"round"`   // last round that it took part in; 0: none
	// false: this request's event is not as declared, and counts as the zero vector
	Fits bool `json:"fits"`
	// events of this request beyond those of a person that a report is about: in none
	Surplus int      `json:"surplus,omitempty"`
	Refused *refusal `json:"refused,omitempty"` // why, where the outcome is refused
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

func refusedBy(err *consent.RefusedError) answer {
	return answer{Outcome: participation.Refused.String(), Final: true, Refused: &refusal{err.Field, err.Value,
		err.Accepted}}
}

// settled returns the answer for an event that the client has answered.
func settled(o device.Outcome) answer {
	if o.State == participation.Refused && o.Refused != nil {
		a := refusedBy(o.Refused)
		a.Round = o.Round
		return a
	}
	return answer{Outcome: o.State.String(), Final: true, Round: o.Round}
}

// stands returns the answer for an event that the client has not answered, by its store.
func stands(p participation.Record) answer {
	switch p.State {
	case participation.Charged:
		a := answer{Outcome: accepted, Round: p.Draw.Round}
		if p.Outcome() == participation.Counted { // in an earlier round of its phase
			a.Outcome = participation.Counted.String()
		}
		return a
	case participation.Counted, participation.Unknown:
		// The event of an interactive phase may take part in another round of it.
		return answer{Outcome: p.State.String(), Final: p.Draw.Most <= 1, Round: p.Draw.Round}
	}
	return answer{Outcome: waiting, Round: p.Draw.Round}
}

// final reports whether the answer for a participation cannot change any more.
func final(p participation.Record) bool { return stands(p).Final }

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

// await waits until an event is settled, or durable if that is enough, or the time is over.
func (g *Gateway) await(ctx context.Context, p *pending, key participation.Key, wait time.Duration,
	outcome bool) (answer, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		part, written, err := g.Store.look(key)
		if err != nil {
			return answer{}, err
		}
		now := stands(part)
		if !outcome && now.Outcome != waiting {
			g.Store.forget(key, written)
			return now, nil
		}
		select {
		case <-p.done:
			g.Store.forget(key, written)
			var refused *consent.RefusedError
			switch {
			case errors.As(p.err, &refused):
				return refusedBy(refused), nil
			case p.err != nil:
				return answer{}, p.err
			}
			return settled(p.outcome), nil
		case <-written:
			continue
		case <-timer.C:
		case <-ctx.Done():
		}
		g.Store.forget(key, written)
		return now, nil
	}
}
