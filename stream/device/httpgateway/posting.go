package httpgateway

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A posting holds the content of a request beside its key: a function that publishes it, one that returns why it
// does not fit the declaration and works it out if that was not done yet, and the number of its events that are in
// no report.
type posting struct {
	send    func(context.Context) (device.Outcome, error)
	unfit   func() error
	surplus int
}

// posting reads a body whose key was read, after use. The request began at a time: a person is offered at the end of
// one of the spans that follow it, so that how long the body is, and whether it is one, does not show.
func (g *Gateway) posting(name string, body []byte, begun time.Time) posting {
	key := participation.EventKey(name)
	if g.mapper.items > 0 {
		person := g.mapper.person(name, body)
		examples := sync.OnceValues(func() ([]convex.Example, error) { return g.mapper.examples(person) })
		due := spanAfter(begun, time.Now(), g.mapper.span())
		return posting{unfit: func() error { _, err := examples(); return err }, surplus: max(0, person.given-g.mapper.items),
			send: func(ctx context.Context) (device.Outcome, error) {
				if err := device.Until(ctx, due); err != nil {
					return device.Outcome{}, err
				}
				return g.Device.PublishBlockFunc(ctx, key, person.given, func() []convex.Example { of, _ := examples(); return of })
			}}
	}
	event := sync.OnceValues(func() (convex.Example, error) {
		e, err := g.mapper.example(name, body)
		if err != nil {
			return invalid(), err
		}
		return e, nil
	})
	return posting{unfit: func() error { _, err := event(); return err }, send: func(ctx context.Context) (device.Outcome,
		error) {
		return g.Device.PublishFunc(ctx, key, func() convex.Example { e, _ := event(); return e })
	}}
}

// A person's body is read and split in a span, on any machine: one of spanBytes, or of as many times as many as its
// events may have.
const (
	bodySpan  = 250 * time.Millisecond
	spanBytes = 4 << 20
)

// span returns the time that reading and splitting a person's body may take, after use, and reveal nothing. A body
// with more bytes than are parsed of it, which has many events that enter no report, may take until the end of the
// next span.
func (m *mapper) span() time.Duration { return bodySpan * time.Duration(1+m.room()/spanBytes) }

// spanAfter returns the end of the span in which now is, of those that begin at a time.
func spanAfter(begun, now time.Time, span time.Duration) time.Time {
	return begun.Add((now.Sub(begun)/span + 1) * span)
}

// A personRequest is the body of a POST, where the task protects people: all events of one.
type personRequest struct {
	Key    string            `json:"key"`
	Events []json.RawMessage `json:"events"`
}

// A person is the events of a body: those that enter a report, as many as may, are parsed and mapped on a tick.
type person struct {
	given  int // all events
	events []json.RawMessage
	err    error // why the body is no person's, who has no events then
}

// maxHeld bounds the bytes of a person's body, whatever is declared.
const maxHeld = 1 << 30

// held returns the number of bytes of a person's body that may be needed, after use.
func (m *mapper) held() int64 {
	return min(int64(m.items), maxHeld/m.most) * m.most
}

// person splits the body of a person. Errors never quote it.
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
		p.events = r.Events[:min(p.given, m.items)]
	}
	return p
}

// room returns the number of bytes that are parsed of a person: for each event as many as the columns of one need,
// plus, for all together, as many as the largest event has.
func (m *mapper) room() int64 { return m.most + int64(m.items)*int64(len(m.decoy)) }

// examples parses and maps a person's events; the error is of the first that does not fit. It takes as long whatever
// the person has: as many events are parsed and mapped, and as many bytes parsed, as those of a person may have.
// Decoys stand in for what is missing, too small, or none.
func (m *mapper) examples(p person) (out []convex.Example, unfit error) {
	unfit = p.err
	decoy, spare := m.features.Decoy(), m.most
	for i := range m.items {
		var e convex.Example
		if i >= len(p.events) {
			_, _ = m.row(m.decoy)
			_ = m.mapRow(decoy, &e)
			continue
		}
		row, err := m.parsed(p.events[i], &spare)
		if err == nil {
			err = m.mapRow(row, &e)
		} else {
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
	for ; spare > 0; spare -= int64(len(m.decoy)) {
		_, _ = m.row(m.decoy)
	}
	return out, unfit
}

// parsed parses an event of a person, or a decoy if there is no such event, and subtracts from the spare bytes those
// by which the event is longer than a decoy.
func (m *mapper) parsed(event json.RawMessage, spare *int64) (task.Row, error) {
	var err error
	more := max(0, int64(len(event)-len(m.decoy)))
	switch {
	case int64(len(event)) > m.most:
		err = errors.New("the event is too large")
	case more > *spare:
		err = errors.New("the person's events that enter a report are too large together")
	case event[0] != '{':
		err = errors.New("an event is not an object")
	}
	if err != nil {
		_, _ = m.row(m.decoy)
		return task.Row{}, err
	}
	*spare -= more
	return m.row(event)
}

// mapRow maps a row as the task declares.
func (m *mapper) mapRow(row task.Row, dst *convex.Example) error {
	if m.onMap != nil {
		m.onMap()
	}
	return m.features.Map(row, dst)
}
