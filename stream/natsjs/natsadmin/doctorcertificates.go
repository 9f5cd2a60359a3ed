package natsadmin

import (
	"context"
	"slices"
	"time"

	"github.com/panlearn/panlearn/stream/natsjs"
)

const renew = `docs/how-to/runbook.md, "a certificate ends"`

// certificate is a certificate with its expiry.
type certificate struct {
	whose string
	end   time.Time
	fix   string
}

// certificates checks when the certificates of each server address expire. An open connection outlives its certificate;
// the next one fails.
func (e *examination) certificates(ctx context.Context) {
	ends, err := e.Certificates().Expiry()
	if err != nil {
		e.find("certificates", Failure, "%v: the next connection cannot be made: put the file back (%s)", err, renew)
	}
	all := []certificate{
		{"our certificate (--tls-cert)", ends.Own, "renew it: the next connection reads the file again"},
		{"an authority in --tls-ca", ends.Authority,
			"put its successor beside it, before certificates that it signed are replaced"},
	}
	for _, one := range e.Certificates().Servers(ctx) {
		if one.Err != nil && ctx.Err() == nil {
			e.find("certificates", Warning,
				"%s: not seen when its certificate ends: %v: see whether that server is up, and whether its certificate names it",
				one.Server, one.Err)
		}
		all = append(all, certificate{"the server's certificate of " + one.Server, one.End, "renew it there"})
	}
	var first time.Time
	for _, one := range all {
		if one.end.IsZero() {
			continue
		}
		e.ending(one)
		if first.IsZero() || one.end.Before(first) {
			first = one.end
		}
	}
	if !first.IsZero() && !slices.ContainsFunc(e.list, func(f Finding) bool { return f.Check == "certificates" }) {
		e.find("certificates", OK, "the first to end, of ours, its authority and each server's: %s",
			first.Format(time.DateOnly))
	}
}

// ending finds a certificate that ends soon, or has ended.
func (e *examination) ending(one certificate) {
	switch left := one.end.Sub(e.expect.Now); {
	case left <= 0:
		e.find("certificates", Failure, "%s ended on %s: %s (%s)", one.whose, one.end.Format(time.DateOnly), one.fix, renew)
	case left < natsjs.ExpirySoon:
		e.find("certificates", Warning, "%s ends on %s: %s (%s)", one.whose, one.end.Format(time.DateOnly), one.fix, renew)
	}
}
