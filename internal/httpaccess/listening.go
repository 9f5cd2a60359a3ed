package httpaccess

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// pairEvery is the shortest time between two readings of a certificate's files.
const pairEvery = time.Minute

// A Listening holds how an interface is reached: its listener, and the certificate that it shows.
type Listening struct {
	HTTP net.Listener
	// Cert and Key are PEM files of the certificate, which are read again when they change; both or none.
	Cert, Key string
}

// Validate refuses a listener that other machines reach without TLS, or by a rule that requires no token. Errors name
// the flags --http, --http-cert, --http-key and --http-token.
func (l Listening) Validate(a Access) error {
	at, ok := l.HTTP.Addr().(*net.TCPAddr)
	local := ok && at.IP.IsLoopback()
	switch {
	case (l.Cert == "") != (l.Key == ""):
		return errors.New("--http-cert and --http-key go together")
	case !local && l.Cert == "":
		return fmt.Errorf("--http %s: other machines reach it: name --http-cert and --http-key, "+
			"or listen on loopback behind a proxy that ends TLS", l.HTTP.Addr())
	case !local && !a.Bearer():
		return fmt.Errorf("--http %s: other machines reach it: name a file with --http-token", l.HTTP.Addr())
	}
	return nil
}

// Server returns a server for a handler, with bounds on connections. Bounds on bodies and responses are the handler's
// task.
func (l Listening) Server(h http.Handler) (*http.Server, error) {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 13}
	if l.Cert == "" {
		return s, nil
	}
	pair := &pair{cert: l.Cert, key: l.Key}
	if _, err := pair.get(nil); err != nil {
		return nil, fmt.Errorf("--http-cert: %w", err)
	}
	s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: pair.get}
	return s, nil
}

// A pair is a certificate and its key in files, which somebody may renew while they are served.
type pair struct {
	cert, key string

	mu   sync.Mutex
	read time.Time        // guarded by mu; zero: never
	now  *tls.Certificate // guarded by mu
}

// get returns the certificate. Files that cannot be read, such as halfway through a renewal, leave the one before.
func (p *pair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil && time.Since(p.read) < pairEvery {
		return p.now, nil
	}
	c, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil && p.now == nil {
		return nil, err
	}
	if p.read = time.Now(); err == nil {
		p.now = &c
	}
	return p.now, nil
}
