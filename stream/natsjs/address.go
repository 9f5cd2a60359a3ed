package natsjs

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// errAddress is a broker's address that cannot be read. It quotes nothing, for what cannot be read may be a password.
var errAddress = errors.New("want nats://HOST:PORT, or several with commas; " +
	"of a user or a password write % / @ and , as %25 %2F %40 and %2C")

// shown returns the broker's addresses for people to read: without passwords, and without a lone word before an @,
// which is a token.
func shown(urls string) (string, error) {
	var out []string
	for text := range strings.SplitSeq(urls, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue // as the client does
		}
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") {
			return "", fmt.Errorf("address %d of the broker: %w", len(out)+1, errAddress)
		}
		if _, has := u.User.Password(); u.User != nil && !has {
			u.User = url.User("xxxxx")
		}
		u.Path, u.RawPath, u.RawQuery, u.Fragment = "", "", "", ""
		out = append(out, u.Redacted())
	}
	return strings.Join(out, ","), nil
}
