package natsjs

import (
	"io"
	"net"
	"sync"
	"testing"
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
}

func newProxy(t *testing.T, url string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, backend: url[len("nats://"):], conns: map[net.Conn]bool{}}
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
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if p.swallow(outward) {
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
