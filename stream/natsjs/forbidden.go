package natsjs

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
)

// userInfo is the subject on which the server answers with the permissions of the client that asks, if they permit the
// question; the shipped configuration does.
const userInfo = "$SYS.REQ.USER.INFO"

// permissions holds those of our user, once the server was asked. A missing list permits everything.
type permissions struct {
	mu    sync.Mutex
	asked bool
	known bool
	Data  struct {
		Permissions *struct {
			Publish *struct {
				Allow []string `json:"allow"`
				Deny  []string `json:"deny"`
			} `json:"publish"`
		} `json:"permissions"`
	} `json:"data"`
}

// Forbidden reports whether, by the broker's word, these credentials may not publish on a subject. The broker is asked
// once; unlike an attempt to publish, the question leaves no permission violation in its log. False is no promise: the
// broker may not answer this question.
func (c *Conn) Forbidden(ctx context.Context, subject string) bool {
	if !c.nc.AuthRequired() {
		return false
	}
	p := &c.permits
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked {
		wait, cancel := c.ask(ctx, userInfo)
		defer cancel()
		m, err := c.nc.RequestWithContext(wait, userInfo, nil)
		if ctx.Err() != nil {
			return false
		}
		p.asked, p.known = true, err == nil && json.Unmarshal(m.Data, p) == nil
	}
	if !p.known || p.Data.Permissions == nil || p.Data.Permissions.Publish == nil {
		return false
	}
	publish := p.Data.Permissions.Publish
	return matches(publish.Deny, subject) || len(publish.Allow) > 0 && !matches(publish.Allow, subject)
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
