package httpgateway

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/client"
	"github.com/panlearn/panlearn/stream/client/participation"
)

// A posting is what a request has beside its key: how that is published, why it does not fit as declared, worked out now at the latest, and how
// many of its events are in no report.
type posting struct {
	send    func(context.Context) (client.Outcome, error)
	unfit   func() error
	surplus int
}

// posting reads a body whose key was read, after use.
func (g *Gateway) posting(name string, body []byte) posting {
	key := participation.EventKey(name)
	if g.mapper.items > 0 {
		person := g.mapper.person(name, body)
		examples := sync.OnceValues(func() ([]convex.Example, error) { return g.mapper.examples(person) })
		return posting{unfit: func() error { _, err := examples(); return err }, surplus: max(0, person.given-g.mapper.items),
			send: func(ctx context.Context) (client.Outcome, error) {
				return g.Client.PublishBlockFunc(ctx, key, person.given, func() []convex.Example { of, _ := examples(); return of })
			}}
	}
	event := sync.OnceValues(func() (convex.Example, error) {
		e, err := g.mapper.example(name, body)
		if err != nil {
			return invalid(), err
		}
		return e, nil
	})
	return posting{unfit: func() error { _, err := event(); return err }, send: func(ctx context.Context) (client.Outcome, error) {
		return g.Client.PublishFunc(ctx, key, func() convex.Example { e, _ := event(); return e })
	}}
}

// A personRequest is the body of a POST, where the task protects people: all events of one.
type personRequest struct {
	Key    string            `json:"key"`
	Events []json.RawMessage `json:"events"`
}

// A person is the events of a body: those that enter a report, as many as may, are read when the body is, and mapped on a tick.
type person struct {
	given int // all events
	rows  []task.Row
	errs  []error // why a row is none
	err   error   // why the body is no person's, who has no events then
}

// maxHeld bounds the bytes of a person's body, whatever is declared.
const maxHeld = 1 << 30

// held is how many bytes of a person's body may be needed, after use.
func (m *mapper) held() int64 {
	return min(int64(m.items), maxHeld/m.most) * m.most
}

// person reads the body of a person. Errors never quote it.
func (m *mapper) person(key string, body []byte) (p person) {
	var r personRequest
	switch p.err = decode(body, &r); {
	case body == nil:
		p.err = errLarge
	case p.err != nil:
	case r.Key != key || r.Events == nil:
		p.err = errObject
	default:
		p.given = len(r.Events)
	}
	for _, event := range r.Events[:min(p.given, m.items)] {
		var row task.Row
		var err error
		switch {
		case int64(len(event)) > m.most:
			err = errors.New("the event is too large")
		case event[0] != '{':
			err = errors.New("an event is not an object")
		default:
			row, err = m.row(event)
		}
		p.rows, p.errs = append(p.rows, row), append(p.errs, err)
	}
	return p
}

// examples maps a person's events; the error is of the first that does not fit. It takes as long whatever the person has.
func (m *mapper) examples(p person) (out []convex.Example, unfit error) {
	unfit = p.err
	decoy := m.features.Decoy()
	for i := range m.items {
		var e convex.Example
		if i >= len(p.rows) {
			_ = m.mapRow(decoy, &e) // it has no label
			continue
		}
		err := p.errs[i]
		if err == nil {
			err = m.mapRow(p.rows[i], &e)
		}
		if err != nil {
			_ = m.mapRow(decoy, &e)
		}
		if err == nil {
			err = m.agreement.Valid(e)
		}
		if err != nil {
			e = invalid()
			if unfit == nil {
				unfit = err
			}
		}
		out = append(out, e)
	}
	return out, unfit
}

// mapRow maps a row as the task declares.
func (m *mapper) mapRow(row task.Row, dst *convex.Example) error {
	if m.onMap != nil {
		m.onMap()
	}
	return m.features.Map(row, dst)
}
