package natsjs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
)

// ErrDenied says that the broker does not let these credentials do what was asked.
var ErrDenied = errors.New("the broker does not permit this to these credentials")

// A question is a request under way. A server says of a publish that it does not permit in a message of its own, that
// names the subject and not the request; without this the request would wait for its time limit.
type question struct {
	subject string
	deny    context.CancelCauseFunc
}

// ask answers a context for one request on subject: that of answerable, which also ends when the broker denies the subject.
func (c *Conn) ask(ctx context.Context, subject string) (context.Context, context.CancelFunc) {
	denied, deny := context.WithCancelCause(ctx)
	wait, cancel := c.answerable(denied)
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

// outcome is the error of a request that was asked with a context of ask, in place of what the end of that context looks
// like.
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

// denial takes note of an error that the server sent by itself. It says whether somebody waited for that answer.
func (c *Conn) denial(err error) (answered bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return false
	}
	verb, subject := violation(err.Error())
	c.mu.Lock()
	defer c.mu.Unlock()
	switch verb {
	case "publish":
		for q := range c.questions {
			if strings.EqualFold(q.subject, subject) {
				q.deny(fmt.Errorf("%w: publish to %s", ErrDenied, q.subject))
				answered = true
			}
		}
	case "subscription":
		if strings.HasPrefix(strings.ToLower(subject), strings.ToLower(c.inbox)+".") {
			c.mute = fmt.Errorf("%w: subscribe to %s, where answers would come: name the inbox prefix that they may use (--inbox-prefix)",
				ErrDenied, subject)
		}
	}
	return answered
}

// violation takes apart what a server says: Permissions Violation for Publish to "subject", or for Subscription to
// "subject". Some versions of the client library put the text into lower case.
func violation(text string) (verb, subject string) {
	const before = "permissions violation for "
	i := strings.LastIndex(strings.ToLower(text), before)
	if i < 0 {
		return "", ""
	}
	rest := text[i+len(before):]
	verb, rest, _ = strings.Cut(rest, " to ")
	_, rest, _ = strings.Cut(rest, `"`)
	subject, _, _ = strings.Cut(rest, `"`)
	return strings.ToLower(verb), subject
}

// refused marks a denial as final: the same call again fails again.
func refused(err error) error {
	if errors.Is(err, ErrDenied) {
		return fmt.Errorf("%w: %w", stream.ErrRefused, err)
	}
	return err
}
