package natsjs

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// A serverExpiry holds the time when the certificate of one server ends. End is zero if the server uses no TLS, or if
// it is not known; Err then gives the reason.
type serverExpiry struct {
	Server string // host:port
	End    time.Time
	Err    error
}

// Servers gets the certificate of each server of the connection's addresses, whichever of them the connection uses. It
// sends nothing beyond the TLS handshake.
func (c *Certificates) Servers(ctx context.Context) []serverExpiry {
	var list []serverExpiry
	for text := range strings.SplitSeq(c.config.URL, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			continue // connecting has refused it
		}
		port := u.Port()
		port = cmp.Or(port, "4222")
		list = append(list, serverExpiry{Server: net.JoinHostPort(u.Hostname(), port)})
	}
	var asked sync.WaitGroup
	for i := range list {
		asked.Go(func() { list[i].End, list[i].Err = c.expiryOf(ctx, list[i].Server) })
	}
	asked.Wait()
	return list
}

// expiryOf returns the first end of the chain of the server at an address, zero where it uses no TLS.
func (c *Certificates) expiryOf(ctx context.Context, address string) (end time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return time.Time{}, err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return time.Time{}, err
	}
	// The handshake begins behind the line that ends the greeting, of which the client says nothing before.
	greeting, err := bufio.NewReaderSize(conn, 1<<16).ReadString('\n')
	if err != nil {
		return time.Time{}, err
	}
	var info struct {
		Required  bool `json:"tls_required"`
		Available bool `json:"tls_available"`
	}
	text, isInfo := strings.CutPrefix(greeting, "INFO ")
	if !isInfo || json.Unmarshal([]byte(text), &info) != nil {
		return time.Time{}, errors.New("its greeting is not that of nats-server")
	}
	if !info.Required && !info.Available {
		return time.Time{}, nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return time.Time{}, err
	}
	config, err := c.probeTLS(host, func(shown *x509.Certificate) { end = shown.NotAfter })
	if err != nil {
		return time.Time{}, err
	}
	if err = tls.Client(conn, config).HandshakeContext(ctx); !end.IsZero() {
		return end, nil // whatever it thinks of our certificate
	}
	return time.Time{}, fmt.Errorf("no TLS handshake: %w", err)
}

// probeTLS configures a handshake that goes on with a certificate that has ended: what it is for is the date. It
// refuses one of another authority or name, so that nobody else's date is taken for the server's. shown is called with
// the first certificate of the chain to end.
func (c *Certificates) probeTLS(host string, shown func(*x509.Certificate)) (*tls.Config, error) {
	var roots *x509.CertPool // nil: the system's
	if c.config.TLSCA != "" {
		text, err := os.ReadFile(c.config.TLSCA)
		if err != nil {
			return nil, err
		}
		roots = x509.NewCertPool()
		roots.AppendCertsFromPEM(text)
	}
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, ServerName: host} //nolint:gosec // VerifyConnection does
	config.VerifyConnection = func(s tls.ConnectionState) error {
		first, between := s.PeerCertificates[0], x509.NewCertPool()
		for _, one := range s.PeerCertificates[1:] {
			between.AddCert(one)
			if one.NotAfter.Before(first.NotAfter) && one.Subject.String() != one.Issuer.String() {
				first = one
			}
		}
		options := x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: host, CurrentTime: time.Now()}
		if first.NotAfter.Before(options.CurrentTime) {
			options.CurrentTime = first.NotAfter // an end in the past is what is asked for
		}
		if _, err := s.PeerCertificates[0].Verify(options); err != nil {
			return err
		}
		shown(first)
		return nil
	}
	if own, err := tls.LoadX509KeyPair(c.config.TLSCert, c.config.TLSKey); err == nil {
		// without it a server shows its own all the same
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

// askServersEvery is the least time between two looks at the servers' certificates.
const askServersEvery = 10 * time.Minute

// Known returns when the certificates of the servers ended when they were last asked, by host:port, and of the
// server of the connection where none was asked yet. It does not wait: it has them asked again where that was ten
// minutes ago.
func (c *Certificates) Known() map[string]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := map[string]time.Time{}
	for server, end := range c.known {
		known[server] = end
	}
	if own, _ := c.Expiry(); c.known == nil && !own.Server.IsZero() {
		known[c.nc.ConnectedAddr()] = own.Server
	}
	if now := time.Now(); c.asked.IsZero() || now.Sub(c.asked) >= askServersEvery {
		c.asked = now
		go c.learn()
	}
	return known
}

// learn reads the certificates' expiries from the servers, and keeps the known expiry of a server that does not reply.
func (c *Certificates) learn() {
	list := c.Servers(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.known
	c.known = map[string]time.Time{}
	for _, one := range list {
		end := one.End
		if one.Err != nil {
			end = before[one.Server]
		}
		if !end.IsZero() {
			c.known[one.Server] = end
		}
	}
	if len(list) == 0 { // in this process
		c.known = nil
	}
}
