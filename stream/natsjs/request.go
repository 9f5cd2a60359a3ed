package natsjs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
)

// Subjects of JetStream's API that the ports ask by name, to know which of them the broker denied.
const (
	apiStreamInfo   = "$JS.API.STREAM.INFO."
	apiStreamPurge  = "$JS.API.STREAM.PURGE."
	apiConsumerInfo = "$JS.API.CONSUMER.INFO."
	apiConsumerNext = "$JS.API.CONSUMER.MSG.NEXT."
)

// Request asks JetStream's API, with request and response as JSON: for calls whose wrappers in the client library
// first ask what a role may not know.
func (c *Conn) Request(ctx context.Context, subject string, request, response any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("request %s: %w", subject, err)
	}
	wait, cancel := c.ask(ctx, subject)
	defer cancel()
	m, err := c.nc.RequestWithContext(wait, subject, body)
	if err != nil {
		return explain(c.outcome(ctx, wait, err))
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := errors.Join(json.Unmarshal(m.Data, &failed), json.Unmarshal(m.Data, response)); err != nil {
		return errors.New("the broker's answer is not JSON")
	}
	if failed.Error != nil {
		return explain(failed.Error)
	}
	return nil
}

// Call makes one call of the client library whose request goes to subject. Its error is ErrDenied where the broker
// does not permit the subject, and says what to do where that is known.
func (c *Conn) Call(ctx context.Context, subject string, do func(context.Context) error) error {
	wait, cancel := c.ask(ctx, subject)
	defer cancel()
	return explain(c.outcome(ctx, wait, do(wait)))
}

// standing returns a context that ends when the connection of now is lost.
func (c *Conn) standing() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// answerable returns a context for one request: it ends with ctx, after a time, and when the connection is lost on
// which the answer would come.
func (c *Conn) answerable(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	wait, cancel := context.WithTimeout(ctx, within)
	stop := context.AfterFunc(c.standing(), cancel)
	return wait, func() {
		stop()
		cancel()
	}
}

// A question is a request under way. A server says of a publish that it does not permit in a message of its own, that
// names the subject and not the request; without this the request would wait for its time limit.
type question struct {
	subject string
	deny    context.CancelCauseFunc
}

// ask returns a context for one request on subject, which is to be answered within the ack timeout.
func (c *Conn) ask(ctx context.Context, subject string) (context.Context, context.CancelFunc) {
	return c.askWithin(ctx, subject, c.config.AckTimeout)
}

// askWithin returns the context of answerable, which also ends when the broker denies the subject.
func (c *Conn) askWithin(ctx context.Context, subject string, within time.Duration) (context.Context,
	context.CancelFunc) {
	denied, deny := context.WithCancelCause(ctx)
	wait, cancel := c.answerable(denied, within)
	forget := c.question(subject, deny)
	return wait, func() {
		forget()
		cancel()
		deny(nil)
	}
}

// question calls deny if the broker denies the subject, until it is forgotten.
func (c *Conn) question(subject string, deny context.CancelCauseFunc) (forget func()) {
	q := &question{subject: subject, deny: deny}
	c.mu.Lock()
	c.questions[q] = true
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		delete(c.questions, q)
		c.mu.Unlock()
	}
}

// outcome returns the error of a request that was made with a context of ask: its cause, such as ErrDenied or a lost
// connection, if one is known, and not just the end of that context.
func (c *Conn) outcome(ctx, wait context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(wait); errors.Is(cause, ErrDenied) {
		return cause
	}
	err = unanswered(ctx, err)
	if errors.Is(err, errNoAnswer) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.mute != nil {
			return c.mute
		}
		if c.session.Err() != nil {
			return stream.ErrDisconnected
		}
	}
	return err
}
