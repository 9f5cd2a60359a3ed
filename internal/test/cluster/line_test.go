package cluster

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// A line is the network between some processes and their server.
type line struct {
	listener net.Listener
	backend  string
	group    sync.WaitGroup

	mu    sync.Mutex // guards all below
	down  bool       // nobody gets through
	pace  int        // bytes a second in each direction; 0: as fast as it goes
	conns map[*link]bool
}

// A link is one connection through a line.
type link struct {
	client, server net.Conn
	dead           chan struct{} // closed: the line is open, and passes no byte any more
	closed         chan struct{}
	die, end       sync.Once
}

func newLine(t testing.TB, url string) *line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &line{listener: l, backend: strings.TrimPrefix(url, "nats://"), conns: map[*link]bool{}}
	n.group.Go(n.accept)
	t.Cleanup(func() {
		l.Close()
		n.each((*link).close)
		n.group.Wait()
	})
	return n
}

func (l *line) url() string { return "nats://" + l.listener.Addr().String() }

// cut closes every connection and refuses new ones until mend.
func (l *line) cut() {
	l.set(true)
	l.each((*link).close)
}

// silence acts as a router that forgot its connections: they stay open for ever, and nothing passes; new ones
// are refused until mend.
func (l *line) silence() {
	l.set(true)
	l.each(func(w *link) { w.die.Do(func() { close(w.dead) }) })
}

func (l *line) mend() { l.set(false) }

func (l *line) set(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

// slow limits the bytes a second; 0 lifts the limit.
func (l *line) slow(pace int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pace = pace
}

func (l *line) each(do func(*link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.conns {
		do(w)
	}
}

func (l *line) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.backend)
		if err != nil {
			client.Close()
			continue
		}
		w := &link{client: client, server: server, dead: make(chan struct{}), closed: make(chan struct{})}
		l.mu.Lock()
		if l.down {
			w.close()
		} else {
			l.conns[w] = true
			l.group.Go(func() { l.copy(w, server, client) })
			l.group.Go(func() { l.copy(w, client, server) })
		}
		l.mu.Unlock()
	}
}

func (l *line) rate() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pace
}

func (l *line) copy(w *link, to, from net.Conn) {
	defer w.close()
	buffer := make([]byte, 1<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-w.dead:
			<-w.closed // the client gives up, or the test ends
			return
		default:
		}
		if pace := l.rate(); pace > 0 && n > 0 {
			timer := time.NewTimer(time.Duration(n) * time.Second / time.Duration(pace))
			select {
			case <-timer.C:
			case <-w.closed:
				timer.Stop()
				return
			}
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err == io.EOF || err != nil {
			return
		}
	}
}

// close ends both sides.
func (w *link) close() {
	w.end.Do(func() {
		w.client.Close()
		w.server.Close()
		close(w.closed)
	})
}
