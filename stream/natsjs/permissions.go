package natsjs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// userInfo is the subject on which a client may request its own permissions, if they include this subject; in the
// shipped configuration they do.
const userInfo = "$SYS.REQ.USER.INFO"

// Permissions hold what the broker permits to our user, once it was asked.
type Permissions struct {
	nc       *nats.Conn
	requests *requests

	mu      sync.Mutex // guards all below
	asked   bool
	publish *patterns // nil: everything, or the broker did not say
}

// patterns hold patterns of subjects.
type patterns struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
}

// Forbidden reports whether the broker has answered that these credentials may not publish on a subject. It asks the
// broker once; unlike an attempt to publish, that leaves no permission violation in the broker's log. False is no
// promise: the broker may not answer the question.
func (p *Permissions) Forbidden(ctx context.Context, subject string) bool {
	if !p.nc.AuthRequired() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked {
		wait, cancel := p.requests.ask(ctx, userInfo)
		defer cancel()
		m, err := p.nc.RequestWithContext(wait, userInfo, nil)
		if ctx.Err() != nil {
			return false
		}
		p.asked = true
		if err == nil {
			p.learn(m.Data)
		}
	}
	return p.publish != nil && (matches(p.publish.Deny, subject) ||
		len(p.publish.Allow) > 0 && !matches(p.publish.Allow, subject))
}

// learn takes the permissions from the broker's answer, and ignores an answer that it cannot parse.
func (p *Permissions) learn(answer []byte) {
	var user struct {
		Data struct {
			Permissions struct {
				Publish *patterns `json:"publish"`
			} `json:"permissions"`
		} `json:"data"`
	}
	if json.Unmarshal(answer, &user) == nil {
		p.publish = user.Data.Permissions.Publish
	}
}

// MaySubscribe returns nil if these credentials may subscribe to a subject, ErrDenied if not. It subscribes until the
// server has answered whether that is permitted; messages that come meanwhile are dropped.
func (p *Permissions) MaySubscribe(ctx context.Context, subject string) error {
	sub, err := p.nc.Subscribe(subject, func(*nats.Msg) {})
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	return p.permitted(ctx, "subscription", subject)
}

// MayPublish returns nil if these credentials may publish on a subject that no stream holds, ErrDenied if not. It
// publishes an empty message, and waits until the server has answered whether that is permitted.
func (p *Permissions) MayPublish(ctx context.Context, subject string) error {
	if err := p.nc.Publish(subject, nil); err != nil {
		return err
	}
	return p.permitted(ctx, "publish", subject)
}

// permitted waits until the server has taken what was sent, and returns ErrDenied if the last thing that it did not
// permit is an operation on subject.
func (p *Permissions) permitted(ctx context.Context, operation, subject string) error {
	flush, cancel := context.WithTimeout(ctx, p.requests.within)
	defer cancel()
	if err := p.nc.FlushWithContext(flush); err != nil {
		return unanswered(ctx, err)
	}
	// The server's word came before its answer to the flush.
	if last := p.nc.LastError(); errors.Is(last, nats.ErrPermissionViolation) {
		if verb, denied := violation(last.Error()); verb == operation && strings.EqualFold(denied, subject) {
			return fmt.Errorf("%w: %s of %s", ErrDenied, operation, subject)
		}
	}
	return nil
}

// matches reports whether one of the patterns, in which * is a token and > the rest, takes a subject without
// wildcards.
func matches(patterns []string, subject string) bool {
	tokens := strings.Split(subject, ".")
	for _, pattern := range patterns {
		if matchesOne(strings.Split(pattern, "."), tokens) {
			return true
		}
	}
	return false
}

func matchesOne(pattern, tokens []string) bool {
	for i, p := range pattern {
		switch {
		case p == ">":
			return i < len(tokens)
		case i >= len(tokens) || p != "*" && p != tokens[i]:
			return false
		}
	}
	return len(pattern) == len(tokens)
}
