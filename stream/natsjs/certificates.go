package natsjs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Certificates read when the certificates of a connection end: ours, the authorities' that we believe, and the servers'.
type Certificates struct {
	config ConnectConfig
	nc     *nats.Conn

	mu    sync.Mutex           // guards all below, for metrics, which do not wait for a server
	known map[string]time.Time // ends that the servers showed
	asked time.Time
}

// ExpirySoon is the time before the end of a certificate at which to renew it.
const ExpirySoon = 14 * 24 * time.Hour

// certificateExpiry holds the times when the certificates of a connection end. A time is zero if there is no such
// certificate.
type certificateExpiry struct {
	Own       time.Time // the first to end in the file of our certificate, as it is on disk: the next connection uses that
	Authority time.Time // the first to end of the authorities that we believe, as they are on disk
	Server    time.Time // the first to end of the chain by which the server was believed, when it connected
}

// Expiry reads the files, which may have been renewed since the connection was made. If a file cannot be
// read it returns the error beside the times that are known.
func (c *Certificates) Expiry() (e certificateExpiry, err error) {
	own, ownErr := fileExpiry(c.config.TLSCert)
	authority, caErr := fileExpiry(c.config.TLSCA)
	e.Own, e.Authority, err = own, authority, errors.Join(ownErr, caErr)
	state, notTLS := c.nc.TLSConnectionState()
	if notTLS != nil {
		return e, err
	}
	chains := state.VerifiedChains
	if len(chains) == 0 {
		chains = [][]*x509.Certificate{state.PeerCertificates}
	}
	for _, chain := range chains { // another chain may last longer: the best one counts
		if end := firstEnd(chain); end.After(e.Server) {
			e.Server = end
		}
	}
	return e, err
}

// warn names at WARN those that end soon. A file that cannot be read is the next connection's error.
func (c *Certificates) warn(now time.Time) {
	ends, _ := c.Expiry()
	for _, one := range []struct {
		which string
		end   time.Time
	}{{"own", ends.Own}, {"authority", ends.Authority}, {"server", ends.Server}} {
		if !one.end.IsZero() && one.end.Sub(now) < ExpirySoon {
			c.config.Log.Warn(
				"a certificate ends soon; then there is no new connection: docs/how-to/runbook.md, a certificate ends", "which",
				one.which, "ends", one.end)
		}
	}
}

// fileExpiry returns the first end among the certificates of a PEM file; zero without a file.
func fileExpiry(path string) (time.Time, error) {
	if path == "" {
		return time.Time{}, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return time.Time{}, err
	}
	var all []*x509.Certificate
	for text = bytes.TrimSpace(text); len(text) > 0; {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return time.Time{}, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return time.Time{}, fmt.Errorf("%s: no certificate in it", path)
	}
	return firstEnd(all), nil
}

func firstEnd(all []*x509.Certificate) (first time.Time) {
	for _, one := range all {
		if first.IsZero() || one.NotAfter.Before(first) {
			first = one.NotAfter
		}
	}
	return first
}
