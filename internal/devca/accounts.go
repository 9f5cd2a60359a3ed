package devca

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/conf"

	"github.com/panlearn/panlearn/deploy"
)

// The accounts of panlearn.conf.
const (
	streamsAccount = "PANLEARN" // has the streams, and the administrator
	devicesAccount = "DEVICES"
)

// roleAccounts are the accounts that have one user, and the user's role.
var roleAccounts = map[string]string{streamsAccount: "admin", "LEARNER": "learner", "STAGE": "stage", "HELPER": "helper"}

// shippedAccounts returns the accounts of panlearn.conf, parsed by the server's own parser, with one user in each: user is its
// public key. What a site in operator mode signs is made of them, so that permissions are written once.
func shippedAccounts(user string) (map[string]any, error) {
	text, err := fs.ReadFile(deploy.NATS, "nats/panlearn.conf")
	if err != nil {
		return nil, err
	}
	of := new(site)
	for _, role := range roleAccounts {
		of.add(role, user)
	}
	of.add("publisher", user)
	text = bytes.Replace(text, []byte("\ninclude \"site.conf\"\n"), append([]byte("\n"), of.bytes("")...), 1)
	parsed, err := conf.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("panlearn.conf: %w", err)
	}
	all, ok := parsed["accounts"].(map[string]any)
	if !ok || len(all) != len(roleAccounts)+1 {
		return nil, errors.New("panlearn.conf: want the five accounts that ship")
	}
	return all, nil
}

// accountClaims returns the claims of an account of panlearn.conf, of which keys has all public keys.
func accountClaims(name string, all map[string]any, keys map[string]string) (*jwt.AccountClaims, error) {
	account, _ := all[name].(map[string]any)
	claims := jwt.NewAccountClaims(keys[name])
	claims.Name = name
	if account["jetstream"] == "enabled" {
		claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit,
			Streams: jwt.NoLimit, Consumer: jwt.NoLimit, MaxAckPending: jwt.NoLimit,
			MemoryMaxStreamBytes: jwt.NoLimit, DiskMaxStreamBytes: jwt.NoLimit}
	}
	for _, one := range list(account["exports"]) {
		kind, subject := jwt.Service, text(one["service"])
		if subject == "" {
			kind, subject = jwt.Stream, text(one["stream"])
		}
		e := &jwt.Export{Name: subject, Subject: jwt.Subject(subject), Type: kind}
		switch r := text(one["response_type"]); {
		case r == "stream":
			e.ResponseType = jwt.ResponseTypeStream
		case kind == jwt.Service && r == "":
			e.ResponseType = jwt.ResponseTypeSingleton
		case r != "":
			return nil, fmt.Errorf("%s exports %s: response type %q is not known here", name, subject, r)
		}
		claims.Exports.Add(e)
	}
	for _, one := range list(account["imports"]) {
		kind, from := jwt.Service, one["service"]
		if from == nil {
			kind, from = jwt.Stream, one["stream"]
		}
		source, _ := from.(map[string]any)
		key := keys[text(source["account"])]
		if key == "" {
			return nil, fmt.Errorf("%s imports from %q, which is no account", name, text(source["account"]))
		}
		subject := text(source["subject"])
		claims.Imports.Add(&jwt.Import{Name: subject, Subject: jwt.Subject(subject), Account: key, Type: kind})
	}
	return claims, blocked(name, claims)
}

// userClaims returns the claims of a user of an account of panlearn.conf.
func userClaims(account, name, user string) (*jwt.UserClaims, error) {
	all, err := shippedAccounts(user)
	if err != nil {
		return nil, err
	}
	of, _ := all[account].(map[string]any)
	users := list(of["users"])
	if len(users) != 1 {
		return nil, fmt.Errorf("account %s of panlearn.conf has %d users, want one", account, len(users))
	}
	p, _ := users[0]["permissions"].(map[string]any)
	claims := jwt.NewUserClaims(user)
	claims.Name = name
	claims.Pub, claims.Sub = permission(p["publish"]), permission(p["subscribe"])
	if len(claims.Pub.Allow) == 0 || len(claims.Sub.Allow) == 0 {
		return nil, fmt.Errorf("account %s of panlearn.conf: its user may do everything", account)
	}
	return claims, blocked(name, claims)
}

func permission(of any) (p jwt.Permission) {
	if m, ok := of.(map[string]any); ok {
		p.Allow, p.Deny = subjects(m["allow"]), subjects(m["deny"])
		return p
	}
	p.Allow = subjects(of)
	return p
}

func subjects(of any) (out jwt.StringList) {
	all, _ := of.([]any)
	for _, s := range all {
		out = append(out, text(s))
	}
	return out
}

// list returns the maps in a list.
func list(of any) (out []map[string]any) {
	all, _ := of.([]any)
	for _, one := range all {
		if m, ok := one.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func text(of any) string {
	s, _ := of.(string)
	return s
}

// blocked returns what makes claims invalid, if anything does.
func blocked(name string, claims interface{ Validate(*jwt.ValidationResults) }) error {
	results := jwt.CreateValidationResults()
	claims.Validate(results)
	var all []string
	for _, issue := range results.Issues {
		if issue.Blocking {
			all = append(all, issue.Description)
		}
	}
	if all != nil {
		return fmt.Errorf("claims of %s: %s", name, strings.Join(all, "; "))
	}
	return nil
}
