package natsjs

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

// Publish implements stream.ReportWriter: it sends while it waits, with at most MaxPending of a connection under way.
func (c *Conn) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	permitted, deny := context.WithCancelCause(ctx)
	defer deny(nil)
	p := publishing{conn: c, acks: make([]stream.Ack, len(reports)), permitted: permitted}
	for i, r := range reports {
		if i == 0 || r.Subject != reports[i-1].Subject { // reports of one call mostly share it
			if _, _, err := stream.CheckPublish(r.Subject); err != nil {
				return p.acks, errors.Join(err, p.drain(ctx))
			}
			defer c.requests.question(r.Subject, deny)()
		}
		if err := p.slot(ctx); err != nil {
			return p.acks, errors.Join(fmt.Errorf("publish: %w", err), p.drain(ctx))
		}
		if err := p.send(i, r); err != nil {
			return p.acks, errors.Join(fmt.Errorf("publish: %w", explain(err)), p.drain(ctx))
		}
	}
	return p.acks, p.drain(ctx)
}

// publishing is one call of Publish.
type publishing struct {
	conn   *Conn
	acks   []stream.Ack
	flight []inFlight // oldest first
	broken error      // first sign that the connection as a whole failed

	permitted context.Context // ends with the caller's, and when the broker denies a subject
}

type inFlight struct {
	index  int
	future jetstream.PubAckFuture
}

// slot takes a slot of the connection, waiting for our own oldest acknowledgement where all are taken.
func (p *publishing) slot(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.broken != nil {
			return p.broken
		}
		select {
		case p.conn.slots <- struct{}{}:
			return nil
		default:
		}
		if len(p.flight) > 0 {
			p.settle(ctx)
			continue
		}
		select {
		case p.conn.slots <- struct{}{}:
			return nil
		case <-ctx.Done():
		}
	}
}

func (p *publishing) send(i int, r stream.Outgoing) error {
	m := &nats.Msg{Subject: r.Subject, Data: r.Data,
		Header: nats.Header{jetstream.MsgIDHeader: []string{hex.EncodeToString(r.ID[:])}}}
	future, err := p.conn.js.PublishMsgAsync(m)
	if err == nil {
		p.flight = append(p.flight, inFlight{index: i, future: future})
		return nil
	}
	<-p.conn.slots
	if notStored(err) {
		p.acks[i] = stream.Ack{Status: stream.Refused, Cause: causeOf(err), Reason: reasonOf(err)}
		return nil
	}
	return err
}

// settle waits for the oldest acknowledgement under way; every future ends, at the latest by the ack timeout.
func (p *publishing) settle(ctx context.Context) {
	f := p.flight[0]
	p.flight = p.flight[1:]
	defer func() { <-p.conn.slots }()
	select {
	case ack := <-f.future.Ok():
		p.acks[f.index] = stream.Ack{Status: stream.Stored, Sequence: ack.Sequence}
		if ack.Duplicate {
			p.acks[f.index].Status = stream.Duplicate
		}
	case err := <-f.future.Err():
		p.acks[f.index].Cause = silence(err)
		switch {
		case notStored(err):
			p.acks[f.index] = stream.Ack{Status: stream.Refused, Cause: causeOf(err), Reason: reasonOf(err)}
		case errors.Is(err, nats.ErrDisconnected), errors.Is(err, jetstream.ErrNoStreamResponse):
			p.broken = fmt.Errorf("publish: %w", explain(err))
		}
	case <-p.permitted.Done():
		err := ctx.Err()
		if err == nil {
			err = context.Cause(p.permitted)
		}
		p.broken = fmt.Errorf("publish: %w", err)
	}
}

// silence returns the reason why the outcome of a publish is not known.
func silence(err error) string {
	if errors.Is(err, jetstream.ErrAsyncPublishTimeout) {
		return "no answer: the broker is slow, or its disk is full; then free space there and restart nats-server"
	}
	return causeOf(err)
}

// causeOf describes an error of the broker, and the way to mend it.
func causeOf(err error) string {
	text := explain(err).Error()
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) {
		text = strings.ReplaceAll(text, api.Error(), fmt.Sprintf("%s [%d]", api.Description, api.ErrorCode))
	}
	return text
}

func (p *publishing) drain(ctx context.Context) error {
	for len(p.flight) > 0 {
		p.settle(ctx)
	}
	return p.broken
}
