package httpgateway

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

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

// posting reads a body whose key was read, after use. The request began at a time: a person is offered at the end of one of the spans that
// follow it, so that how long the body is, and whether it is one, does not show.
func (g *Gateway) posting(name string, body []byte, begun time.Time) posting {
	key := participation.EventKey(name)
	if g.mapper.items > 0 {
		person := g.mapper.person(name, body)
		examples := sync.OnceValues(func() ([]convex.Example, error) { return g.mapper.examples(person) })
		due := spanAfter(begun, time.Now(), g.mapper.span())
		return posting{unfit: func() error { _, err := examples(); return err }, surplus: max(0, person.given-g.mapper.items),
			send: func(ctx context.Context) (client.Outcome, error) {
				if err := until(ctx, due); err != nil {
					return client.Outcome{}, err
				}
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

// A body of a person is read and split in spanBytes a span at least, on any machine.
const (
	bodySpan  = 250 * time.Millisecond
	spanBytes = 4 << 20
)

// span is how long reading and splitting a person's body may take and show nothing, after use.
func (m *mapper) span() time.Duration { return bodySpan * time.Duration(1+m.held()/spanBytes) }

// spanAfter is the end of the span in which now is, of those that begin at a time.
func spanAfter(begun, now time.Time, span time.Duration) time.Time {
	return begun.Add((now.Sub(begun)/span + 1) * span)
}

// until waits for a time.
func until(ctx context.Context, due time.Time) error {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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

// held is how many bytes of a person's body may be needed, after use.
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

// room is how many bytes the events of a person that enter a report may have together: one of the largest, and each what its columns need.
// They are parsed on a tick, on which a person with fewer has decoys parsed.
func (m *mapper) room() int64 { return m.most + int64(m.items)*int64(len(m.decoy)) }

// examples parses and maps a person's events; the error is of the first that does not fit. It takes as long whatever the person has: as many
// rows are mapped, and as many bytes parsed, as those of a person may have.
func (m *mapper) examples(p person) (out []convex.Example, unfit error) {
	unfit = p.err
	decoy, left := m.features.Decoy(), m.room()
	for i := range m.items {
		var e convex.Example
		if i >= len(p.events) {
			left -= m.parseDecoy()
			_ = m.mapRow(decoy, &e) // it has no label
			continue
		}
		err := m.parsed(p.events[i], &left, &e)
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
	for left > 0 {
		left -= m.parseDecoy()
	}
	return out, unfit
}

// parsed parses and maps an event of a person, and takes its bytes off those that are left.
func (m *mapper) parsed(event json.RawMessage, left *int64, dst *convex.Example) error {
	size := int64(len(event))
	switch {
	case size > m.most:
		return errors.New("the event is too large")
	case size > *left:
		return errors.New("the person's events that enter a report are too large together")
	case event[0] != '{':
		return errors.New("an event is not an object")
	}
	*left -= size
	row, err := m.row(event)
	if err != nil {
		return err
	}
	return m.mapRow(row, dst)
}

// parseDecoy parses an event of the declared shape, and returns its size.
func (m *mapper) parseDecoy() int64 {
	_, _ = m.row(m.decoy)
	return int64(len(m.decoy))
}

// mapRow maps a row as the task declares.
func (m *mapper) mapRow(row task.Row, dst *convex.Example) error {
	if m.onMap != nil {
		m.onMap()
	}
	return m.features.Map(row, dst)
}
