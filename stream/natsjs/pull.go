package natsjs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
)

// longestPull bounds one request at the broker: a leader that changes may forget it without a word.
const longestPull = 10 * time.Second

// longestBurst bounds how long a fetch, after its wait, waits for the rest of the messages that the broker sends
// together. Over a slow link that takes longer, and the next fetch gets the rest.
const longestBurst = 100 * time.Millisecond

// A pull is a request for reports. It ends when all have come, or when the broker reports that no more will come.
type pull struct {
	subject string          // of the broker's word; reports keep their own
	left    int             // reports that may still come; 0: it has ended
	over    time.Time       // when the broker's word should have come
	session context.Context // of the connection on which it was made
}

func (p *pull) open() bool {
	if p.left > 0 && (p.session.Err() != nil || time.Now().After(p.over)) {
		p.left = 0
	}
	return p.left > 0
}

// heed returns the report in a message, or nil if the message is the broker's word about a pull, with an error if the
// pull did not end normally.
func (p *pull) heed(m *nats.Msg) (*stream.Delivery, error) {
	status := m.Header.Get("Status")
	if inbox := p.subject[:strings.LastIndexByte(p.subject, '.')+1]; status != "" && strings.HasPrefix(m.Subject, inbox) {
		// no report's subject
		if m.Subject != p.subject || status == "100" {
			return nil, nil // of an earlier one, or a heartbeat
		}
		p.left = 0
		switch status {
		case "404", "408": // no reports, or not in time
			return nil, nil
		case "503":
			return nil, nats.ErrNoResponders
		}
		return nil, fmt.Errorf("the broker ended a fetch: %s %s", status, m.Header.Get("Description"))
	}
	p.left = max(0, p.left-1)
	meta, err := m.Metadata()
	if err != nil {
		return nil, nil // not a delivery
	}
	data := m.Data
	m.Data = nil // an acknowledgement that waits holds no report
	return &stream.Delivery{
		Message:     stream.Message{Subject: m.Subject, Sequence: meta.Sequence.Stream, Data: data},
		Redelivered: meta.NumDelivered > 1,
		Came:        meta.Timestamp,
		Pending:     meta.NumPending,
		Ack:         func() error { return m.Ack() },
	}, nil
}

func (r *Reader) next() string { return apiConsumerNext + r.task.Name(stream.Reports) + "." + Durable }

// listen opens the subscription on which reports come, where it is not.
func (r *Reader) listen() (err error) {
	if r.inbox == nil {
		r.inbox, err = listen(r.conn.nc, r.conn.nc.NewInbox()+".*")
	}
	return err
}

// hangUp ends the subscription, where there is one: the broker delivers nothing more to it.
func (r *Reader) hangUp() {
	if r.inbox != nil {
		_ = r.inbox.sub.Unsubscribe() // fails only where it is no more
	}
	r.inbox, r.last.left = nil, 0
}

// Close ends the subscription on which reports come, which otherwise lasts as long as the connection. No Fetch may be
// under way.
func (r *Reader) Close() { r.hangUp() }

// message returns the next message: one that has arrived, or that comes until the context ends or the last pull should
// have.
func (r *Reader) message(until context.Context) (*nats.Msg, error) {
	until, cancel := context.WithDeadline(until, r.last.over)
	defer cancel()
	return r.inbox.next(until)
}

// request makes a pull. The broker sends the reports that are there; if there are none, it waits for some, and ends
// the pull when the wait is over. A pull that did not wait, because others asked before, is repeated for one report.
func (r *Reader) request(most int, wait time.Duration, again bool) error {
	var body struct {
		Batch   int           `json:"batch"`
		Expires time.Duration `json:"expires,omitempty"` // nanoseconds
		NoWait  bool          `json:"no_wait,omitempty"` // with expires: until some came
	}
	body.Batch, body.NoWait = most, true
	if again {
		body.Batch, body.NoWait = 1, false
	}
	if wait >= time.Millisecond {
		body.Expires = min(wait, longestPull)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	prefix := strings.TrimSuffix(r.inbox.sub.Subject, "*")
	r.number++
	r.last = pull{
		subject: fmt.Sprint(prefix, r.number), left: body.Batch, session: r.conn.requests.standing(),
		over: time.Now().Add(body.Expires + r.conn.config.AckTimeout),
	}
	if err := r.conn.nc.PublishRequest(r.next(), r.last.subject, data); err != nil {
		r.last.left = 0
		return err
	}
	return nil
}
