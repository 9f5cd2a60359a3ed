// Package httpaccess decides who may use an interface over HTTP: who carries a token, or every process of this machine.
package httpaccess

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// MinToken is the length of the shortest token that is taken, in bytes.
const MinToken = 16

// An Access is a rule. The zero Access takes every request that names this machine by its loopback name; a request from
// a web page, under a domain that was made to resolve to this machine, has another name. Its listener must be on
// loopback.
type Access struct {
	bearer bool
	token  [sha256.Size]byte
}

// Token returns the rule that takes requests with the header "Authorization: Bearer TOKEN". Errors do not quote it.
func Token(token string) (Access, error) {
	if len(token) < MinToken {
		return Access{}, fmt.Errorf("the token has %d bytes: want at least %d", len(token), MinToken)
	}
	for _, r := range []byte(token) {
		if r <= ' ' || r > '~' {
			return Access{}, errors.New("the token has a character that no header carries: want printable ASCII without blanks")
		}
	}
	return Access{bearer: true, token: sha256.Sum256([]byte(token))}, nil
}

// Bearer reports whether the rule requires a token.
func (a Access) Bearer() bool { return a.bearer }

// Refuse returns the status and the reason with which a request is refused, or 0 if it may pass. whose is the name of
// the interface in the reason. It sets the header that belongs to the refusal.
func (a Access) Refuse(w http.ResponseWriter, r *http.Request, whose string) (status int, why string) {
	if !a.bearer {
		if !ThisMachine(r.Host) {
			return http.StatusForbidden, "the Host header does not name this machine's loopback address"
		}
		return 0, ""
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got := sha256.Sum256([]byte(token))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], a.token[:]) != 1 {
		w.Header().Set("WWW-Authenticate", `Bearer realm="panlearn"`)
		return http.StatusUnauthorized, "want the header Authorization: Bearer TOKEN, with the " + whose + "'s token"
	}
	return 0, ""
}

// ThisMachine reports whether a Host header, with or without a port, names a loopback address.
func ThisMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
