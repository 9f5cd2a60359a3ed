package issuer

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
)

// maxPerson is the length of the longest name of a person, in bytes.
const maxPerson = 1 << 10

// isPerson reports whether a text names a person: of 1 to maxPerson bytes of UTF-8, without blanks at its ends and
// control characters, by which one name would be several people.
func isPerson(name string) bool {
	return name != "" && len(name) <= maxPerson && utf8.ValidString(name) && strings.TrimSpace(name) == name &&
		!strings.ContainsFunc(name, unicode.IsControl)
}

// A Login names the person who makes a request: always by the same text. The error is sent to the caller, and must not
// quote the request.
type Login func(*http.Request) (person string, err error)

var errNobody = errors.New("nobody is logged in")

// HeaderLogin takes the person from a header that a proxy sets, and that it removes from what others send.
func HeaderLogin(header string) Login {
	return func(r *http.Request) (string, error) {
		switch all := r.Header.Values(header); {
		case len(all) == 0 || all[0] == "":
			return "", errNobody
		case len(all) > 1 || !isPerson(all[0]):
			return "", errors.New("the header of the login has more than one value, a long one, blanks at its ends, or no UTF-8")
		default:
			return all[0], nil
		}
	}
}

// JWTConfig fixes which tokens of a login are taken.
type JWTConfig struct {
	// KeyFile has the login's public key in PEM: RSA, of an elliptic curve, or Ed25519.
	KeyFile string
	// Issuer and Audience must be the values of iss and aud: a token that the login made for another service names nobody
	// here.
	Issuer, Audience string
}

// JWTLogin takes the person from the claim sub of a JWT in the header Authorization: Bearer, signed by the login's key
// (RS256, ES256 or EdDSA), with a time at which it expires.
func JWTLogin(c JWTConfig) (Login, error) {
	if c.Issuer == "" || c.Audience == "" {
		return nil, errors.New("a JWT's issuer and audience: want both")
	}
	text, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return nil, err
	}
	var key any
	var method string
	if k, err := jwt.ParseRSAPublicKeyFromPEM(text); err == nil {
		key, method = k, jwt.SigningMethodRS256.Alg()
	} else if k, err := jwt.ParseECPublicKeyFromPEM(text); err == nil {
		key, method = k, jwt.SigningMethodES256.Alg()
	} else if k, err := jwt.ParseEdPublicKeyFromPEM(text); err == nil {
		key, method = k, jwt.SigningMethodEdDSA.Alg()
	} else {
		return nil, fmt.Errorf("%s: want the public key of a login in PEM", c.KeyFile)
	}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{method}), jwt.WithIssuer(c.Issuer), jwt.WithAudience(c.Audience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(10*time.Second))
	return func(r *http.Request) (string, error) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || len(token) > 1<<13 {
			return "", errNobody
		}
		parsed, err := parser.ParseWithClaims(token, &jwt.RegisteredClaims{},
			func(*jwt.Token) (any, error) { return key, nil })
		if err != nil {
			return "", errors.New("the login's token does not verify, or is of another time or service")
		}
		person, err := parsed.Claims.GetSubject()
		if err != nil || !isPerson(person) {
			return "", errNobody
		}
		return person, nil
	}, nil
}
