package relayclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
)

// errAnswer means that a 200 to a POST was no answer to it.
var errAnswer = errors.New("no answer from the relay: the 200 does not say what the broker said of this report")

// Publish implements stream.ReportWriter: a POST for each report, several at one time. An acknowledgement is an answer
// that has the report's id; whatever else comes back leaves it Unknown, for it may be stored.
func (c *Client) Publish(ctx context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks := make([]stream.Ack, len(reports))
	if err := ctx.Err(); err != nil {
		return acks, fmt.Errorf("publish: %w", err)
	}
	addresses := make([]stream.Address, len(reports))
	for i, r := range reports {
		if _, _, err := stream.CheckPublish(r.Subject); err != nil {
			return acks, err
		}
		addresses[i], _ = stream.ParseSubject(r.Subject) // CheckPublish knows that it is one
	}
	var group sync.WaitGroup
	errs := make([]error, len(reports))
	for i := range reports {
		select {
		case c.posts <- struct{}{}:
		case <-ctx.Done():
			errs[i] = ctx.Err()
		}
		if errs[i] != nil {
			break
		}
		group.Go(func() {
			defer func() { <-c.posts }()
			acks[i], errs[i] = c.post(ctx, addresses[i], reports[i])
			if errs[i] != nil {
				acks[i].Cause = errs[i].Error()
			}
		})
	}
	group.Wait()
	answered := len(reports) == 0
	for _, a := range acks {
		answered = answered || a.Status != stream.Unknown
	}
	for _, err := range errs {
		// A connection that brought an answer has not failed as a whole.
		if err != nil && (ctx.Err() != nil || !answered && errors.Is(err, stream.ErrDisconnected)) {
			return acks, fmt.Errorf("publish: %w", err)
		}
	}
	return acks, nil
}

func (c *Client) post(ctx context.Context, at stream.Address, r stream.Outgoing) (stream.Ack, error) {
	body := relayhttp.Report{Round: at.Round, Attempt: at.Attempt, ID: r.ID, Data: r.Data}.Bytes()
	a, err := c.do(ctx, c.config.Timeout, maxOther, http.MethodPost, at.Task, relayhttp.Reports, body)
	switch {
	case err != nil:
		return stream.Ack{}, err
	case a.status != http.StatusOK:
		return stream.Ack{}, c.wrong(a)
	}
	answer, err := relayhttp.ParseAnswer(a.body)
	if err != nil || answer.ID != r.ID {
		return stream.Ack{}, errAnswer
	}
	ack := stream.Ack{Status: answer.Status, Sequence: answer.Sequence, Reason: answer.Reason}
	if ack.Status == stream.Refused {
		ack.Cause = answer.Reason.String()
	}
	return ack, nil
}

// Place implements stream.PlaceAsker. The bytes of a 200 are the stage's, or nobody's: who reads them looks for the id of
// the request.
func (c *Client) Place(ctx context.Context, subject string, request []byte) ([]byte, error) {
	at, err := stream.ParseSubject(subject)
	if err != nil || at.Verb != "place" {
		return nil, fmt.Errorf("place: %w: want the place subject of an attempt", stream.ErrRefused)
	}
	body := relayhttp.Place{Round: at.Round, Attempt: at.Attempt, Request: request}.Bytes()
	a, err := c.do(ctx, c.config.Timeout, maxOther, http.MethodPost, at.Task, relayhttp.Places, body)
	if err == nil && a.status != http.StatusOK {
		err = c.wrong(a)
	}
	if err == nil && len(a.body) > relayhttp.MaxPlace {
		err = errAnswer
	}
	if err != nil {
		return nil, fmt.Errorf("place: %w", err)
	}
	return a.body, nil
}
