package natsjs

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// defaultInbox returns _INBOX_ and the public key of the user: a subject that permissions can give to this user alone,
// in a server's configuration by the key, in operator mode by the template _INBOX_{{subject()}}.> of a scoped signing
// key.
func defaultInbox(options []nats.Option) string {
	var o nats.Options
	for _, option := range options {
		if option(&o) != nil {
			return PlainInbox // the attempt to connect reports the error
		}
	}
	user := o.Nkey
	if o.UserJWT != nil {
		if token, err := o.UserJWT(); err == nil {
			user = subjectOf(token)
		}
	}
	if user == "" {
		return PlainInbox
	}
	return InboxOf(user)
}

// usurped reports whether the credentials now name another user than the one for whose inbox the connection was made.
func (c *ConnectConfig) usurped(inbox string) bool {
	if c.Creds == "" || c.InboxPrefix != "" {
		return false
	}
	now := defaultInbox([]nats.Option{nats.UserCredentials(c.Creds)})
	return now != PlainInbox && now != inbox
}

// PlainInbox is the prefix of reply subjects where credentials name no user.
const PlainInbox = "_INBOX"

// subjectOf returns the subject claim of a JWT, the public key of its user; empty where there is none. Nothing is
// verified: it is our own file.
func subjectOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	if json.Unmarshal(body, &claims) != nil || strings.ContainsAny(claims.Subject, " \t\r\n.*>") {
		return ""
	}
	return claims.Subject
}

// NewUser makes an NKey of a broker's user from the system's randomness: the seed that the user's process keeps, and
// the public key that the broker's configuration names.
func NewUser() (seed []byte, public string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, "", fmt.Errorf("new nkey: %w", err)
	}
	defer pair.Wipe()
	if seed, err = pair.Seed(); err != nil {
		return nil, "", fmt.Errorf("new nkey: %w", err)
	}
	seed = bytes.Clone(seed) // Wipe takes the original
	if public, err = pair.PublicKey(); err != nil {
		return nil, "", fmt.Errorf("new nkey: %w", err)
	}
	return seed, public, nil
}

// InboxOf returns the prefix of the reply subjects of the user with this public key.
func InboxOf(public string) string { return PlainInbox + "_" + public }
