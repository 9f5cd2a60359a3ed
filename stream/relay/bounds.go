package relay

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
)

// maxMessages bounds the posts, and the reads by name, that are under way in all: each holds the bytes of one message.
const maxMessages = 2048

// bounds counts requests that are under way, in all and of each address.
type bounds struct {
	perAddress, total int

	mu  sync.Mutex
	of  map[netip.Prefix]int // guarded by mu; addresses without a request are not in it
	all int                  // guarded by mu
}

func newBounds(perAddress, total int) bounds {
	return bounds{perAddress: perAddress, total: total, of: make(map[netip.Prefix]int)}
}

func (b *bounds) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all
}

// enter counts a request until leave is called. It returns the status of a refusal where one is too many.
func (b *bounds) enter(from netip.Prefix) (leave func(), status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.all >= b.total:
		return nil, http.StatusServiceUnavailable
	case b.of[from] >= b.perAddress:
		return nil, http.StatusTooManyRequests
	}
	b.all++
	b.of[from]++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.all--
		if b.of[from]--; b.of[from] == 0 {
			delete(b.of, from)
		}
	}, 0
}

// enter counts a request in b until leave is called. It has refused the request if ok is false.
func (r *Relay) enter(b *bounds, w http.ResponseWriter, q *http.Request) (leave func(), ok bool) {
	leave, status := b.enter(address(q, r.AddressHeader))
	if status != 0 {
		r.tooMany(w, status)
	}
	return leave, status == 0
}

// address returns the prefix that the bounds count as one client: an IPv4 address, or the first 64 bits of an IPv6
// address, which one site has. If header is not empty it is read from that header, or from the connection if the header
// is absent or unreadable.
func address(q *http.Request, header string) netip.Prefix {
	if header != "" {
		values := q.Header.Values(header)
		if n := len(values); n > 0 {
			last := values[n-1]
			if a, ok := parseAddress(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])); ok {
				return a
			}
		}
	}
	a, _ := parseAddress(q.RemoteAddr)
	return a
}

func parseAddress(text string) (netip.Prefix, bool) {
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return netip.Prefix{}, false
	}
	a = a.Unmap().WithZone("")
	bits := 32
	if a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	return p, err == nil
}
