package natsjs_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy sits between client and server. Armed, it lets the client's next bytes through and then cuts the connection
// instead of handing back the server's answer: the write is done, its acknowledgement is lost.
type proxy struct {
	listener net.Listener
	backend  string
	group    sync.WaitGroup

	mu    sync.Mutex
	armed bool
	wrote bool // the client wrote after arming
	conns map[net.Conn]bool
	mute  map[net.Conn]bool // that are open and carry nothing any more
	pace  int               // bytes a second in each direction; 0: as fast as it goes
}

func newProxy(t *testing.T, url string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, backend: url[len("nats://"):], conns: map[net.Conn]bool{}, mute: map[net.Conn]bool{}}
	p.group.Go(p.accept)
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) loseAck() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.wrote = true, false
}

// cut closes every connection, as a network that fails.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// silence keeps the present connections open and passes no byte any more, as a router that forgot them. New ones work.
func (p *proxy) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		p.mute[c] = true
	}
}

func (p *proxy) slow(pace int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pace = pace
}

func (p *proxy) close() {
	p.listener.Close()
	p.cut()
	p.group.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.backend)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.group.Go(func() { p.copy(server, client, true) })
		p.group.Go(func() { p.copy(client, server, false) })
	}
}

func (p *proxy) copy(to, from net.Conn, outward bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if p.swallow(outward) {
				return
			}
			if p.delay(from, n) {
				_, _ = io.Copy(io.Discard, from) // until somebody gives it up
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err == io.EOF || err != nil {
			return
		}
	}
}

// delay takes the time that n bytes take, and reports whether the connection is mute.
func (p *proxy) delay(from net.Conn, n int) bool {
	p.mu.Lock()
	mute, pace := p.mute[from], p.pace
	p.mu.Unlock()
	if pace > 0 {
		<-time.After(time.Duration(n) * time.Second / time.Duration(pace))
	}
	return mute
}

func (p *proxy) swallow(outward bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if outward {
		p.wrote = p.armed
		return false
	}
	if p.armed && p.wrote {
		p.armed = false
		return true
	}
	return false
}
