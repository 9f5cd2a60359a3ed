package httpgateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/panlearn/panlearn/stream/device"
)

// A posting holds what one body says of a key.
type posting struct {
	key     string
	ticket  device.Ticket
	surplus int       // events that are in no report
	due     time.Time // when it is offered; zero: at once
}

// posting reads a body with a key. begun is when the request began. A person is offered at the end of one of the spans
// after it, so that neither the length of the body nor whether it is a person shows.
func (g *Gateway) posting(b *body, begun time.Time) (p posting, err error) {
	shape := g.shape()
	p.key = b.name()
	events := []device.Event{device.EventFunc(func() ([]byte, error) { return parseEvent(b.text, shape.Bytes) })}
	if shape.Items > 0 {
		events = parsePerson(p.key, b.text)
		p.surplus = max(0, len(events)-shape.Items)
		p.due = spanAfter(begun, time.Now(), span(shape.Room))
	}
	p.ticket, err = g.Device.Prepare(g.ctx, p.key, events...)
	return p, err
}

// answer returns the answer for a posting. Only the first posting of a key gets the details of its event, because a
// later one is not sent.
func (p posting) answer(s standing, first bool) answer {
	a := answer{standing: s}
	if first {
		fits := p.ticket.Fits()
		a.Fits, a.Surplus = &fits, p.surplus
	}
	return a
}

// A body is read and split in a span, on any machine: one of spanBytes, or of as many times as many as may be parsed of
// it.
const (
	bodySpan  = 250 * time.Millisecond
	spanBytes = 4 << 20
)

// span returns the time that reading and splitting bodies of which so many bytes may be parsed may take, and reveal
// nothing. A body with more bytes than are parsed of it, which has many events that enter no report, may take until the
// end of the next span.
func span(room int64) time.Duration { return bodySpan * time.Duration(1+room/spanBytes) }

// spanAfter returns the end of the span in which now is, of those that begin at a time.
func spanAfter(begun, now time.Time, span time.Duration) time.Time {
	return begun.Add((now.Sub(begun)/span + 1) * span)
}

// A personRequest is the body of a POST, where the task protects people: all events of one.
type personRequest struct {
	Key    string            `json:"key"`
	Events []json.RawMessage `json:"events"`
}

// decode reads a body that is one object with the members of r alone.
func decode(body []byte, r any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return errObject
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON object in the body")
	}
	return nil
}

// maxHeld bounds the bytes of a person's body, whatever is declared.
const maxHeld = 1 << 30

// held returns the number of bytes of a body that may be needed.
func (g *Gateway) held() int64 {
	shape := g.shape()
	return max(g.MaxBody, min(int64(shape.Items), maxHeld/shape.Bytes)*shape.Bytes)
}
