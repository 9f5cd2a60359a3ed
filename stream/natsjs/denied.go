package natsjs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/stream"
)

// ErrDenied means that the broker does not permit the operation to these credentials.
var ErrDenied = errors.New("the broker does not permit this to these credentials")

// denial records an error that the server sent by itself. It reports whether a request waited for it.
func (r *requests) denial(err error) (answered bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return false
	}
	verb, subject := violation(err.Error())
	r.mu.Lock()
	defer r.mu.Unlock()
	switch verb {
	case "publish":
		for q := range r.asked {
			if strings.EqualFold(q.subject, subject) {
				q.deny(fmt.Errorf("%w: publish to %s", ErrDenied, q.subject))
				answered = true
			}
		}
	case "subscription":
		if strings.HasPrefix(strings.ToLower(subject), strings.ToLower(r.inbox)+".") {
			r.mute = fmt.Errorf(
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
