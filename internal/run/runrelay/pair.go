package runrelay

import (
	"crypto/tls"
	"sync"
	"time"
)

// pairEvery is the shortest time between two readings of a certificate's files.
const pairEvery = time.Minute

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
