package natsjs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
)

// ErrDenied means that the broker does not permit the operation to these credentials.
var ErrDenied = errors.New("the broker does not permit this to these credentials")

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
			c.mute = fmt.Errorf(
				"%w: subscribe to %s, where answers would come: name the inbox prefix that they may use (--inbox-prefix)",
				ErrDenied, subject)
		}
	}
	return answered
}

// violation parses a server's error: Permissions Violation for Publish to "subject", or for Subscription to "subject".
// Some versions of the client library put the text into lower case.
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

// MaySubscribe returns nil if these credentials may subscribe to a subject, ErrDenied if not. It subscribes until the
// server has answered whether that is permitted; messages that come meanwhile are dropped.
func (c *Conn) MaySubscribe(ctx context.Context, subject string) error {
	sub, err := c.nc.Subscribe(subject, func(*nats.Msg) {})
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	return c.permitted(ctx, "subscription", subject)
}

// MayPublish returns nil if these credentials may publish on a subject that no stream holds, ErrDenied if not. It
// publishes an empty message, and waits until the server has answered whether that is permitted.
func (c *Conn) MayPublish(ctx context.Context, subject string) error {
	if err := c.nc.Publish(subject, nil); err != nil {
		return err
	}
	return c.permitted(ctx, "publish", subject)
}

// permitted waits until the server has taken what was sent, and returns ErrDenied if the last thing that it did not
// permit is an operation on subject.
func (c *Conn) permitted(ctx context.Context, operation, subject string) error {
	flush, cancel := context.WithTimeout(ctx, c.config.AckTimeout)
	defer cancel()
	if err := c.nc.FlushWithContext(flush); err != nil {
		return unanswered(ctx, err)
	}
	// The server's word came before its answer to the flush.
	if last := c.nc.LastError(); errors.Is(last, nats.ErrPermissionViolation) {
		if verb, denied := violation(last.Error()); verb == operation && strings.EqualFold(denied, subject) {
			return fmt.Errorf("%w: %s of %s", ErrDenied, operation, subject)
		}
	}
	return nil
}
