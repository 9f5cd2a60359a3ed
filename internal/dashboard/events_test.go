package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"github.com/panlearn/panlearn/internal/obs"
)

// A pipes hands out connections inside of a bubble, so that timeouts pass in a fake clock.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// A served is a scene behind the server that the programs use, in a bubble.
type served struct {
	*scene
	t     *testing.T
	pipes pipes
	shown chan struct{}
	stop  func() error
}

func serving(t *testing.T, o Options, f func(*served)) {
	synctest.Test(t, func(t *testing.T) {
		s := &served{scene: newScene(), t: t, pipes: pipes{make(chan net.Conn), make(chan struct{})},
			shown: make(chan struct{})}
		s.Board.config.Now = time.Now
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- obs.Serve(ctx, s.pipes, Handler(s.Board, s.shown, o)) }()
		stopped := false
		s.stop = func() error {
			stopped = true
			close(s.shown)
			cancel()
			return <-done
		}
		f(s)
		if !stopped {
			if err := s.stop(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A reader reads events over a connection of its own.
type reader struct {
	t    *testing.T
	conn net.Conn
	resp *http.Response
	in   *bufio.Reader
}

func (s *served) dial() net.Conn {
	client, server := net.Pipe()
	s.pipes.conns <- server
	s.t.Cleanup(func() { client.Close() })
	return client
}

func (s *served) open() reader {
	s.t.Helper()
	conn := s.dial()
	fmt.Fprintf(conn, "GET /events HTTP/1.1\r\nHost: test\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	strictly(s.t, "/events", resp.Header)
	return reader{s.t, conn, resp, bufio.NewReader(resp.Body)}
}

// next returns the next update; false at the end of the stream.
func (r reader) next() (update, bool) {
	r.t.Helper()
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			if err != io.EOF {
				r.t.Errorf("the stream breaks off: %v", err)
			}
			return update{}, false
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var u update
			if err := json.Unmarshal([]byte(data), &u); err != nil {
				r.t.Fatal(err)
			}
			return u, true
		}
	}
}

// TestEventsAreThePage: the first event has every part as the page has it, and the next ones what has changed.
func TestEventsAreThePage(t *testing.T) {
	serving(t, Options{}, func(s *served) {
		s.Broker(true)
		s.Resumed(s.progress())
		s.announce()
		r := s.open()
		if r.resp.StatusCode != 200 || r.resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%v", r.resp)
		}
		first, _ := r.next()
		page := s.document(s.t)
		parts := s.Board.view(nil, byRounds).parts()
		for _, part := range parts {
			name := part.id
			fragment, sent := first.Parts[name]
			nodes, err := html.ParseFragment(strings.NewReader(fragment), page.byID(name))
			if err != nil || !sent {
				t.Fatalf("%s: %v, sent: %t", name, err, sent)
			}
			var got []string
			for _, n := range nodes {
				if s := text(n); n.Type == html.TextNode {
					got = append(got, strings.Fields(n.Data)...)
				} else if s != "" {
					got = append(got, s)
				}
			}
			if want := text(page.byID(name)); strings.Join(got, " ") != want {
				t.Errorf("%s: the event says %q, the page %q", name, got, want)
			}
		}
		if len(first.Parts) != len(parts) || first.Build != pageBuild() ||
			!strings.HasPrefix(first.Title, "Round 1 of 40 · income") {
			t.Errorf("%d parts, build %q, title %q", len(first.Parts), first.Build, first.Title)
		}
		s.report(40)
		second, _ := r.next()
		if second.Parts["cohort"] == "" || second.Parts["norm"] != "" || second.Parts["weights"] != "" {
			t.Errorf("parts %v, want what a report changes alone", second.Parts)
		}
		began := time.Now()
		if still, _ := r.next(); len(still.Parts) > 1 || time.Since(began) < beat {
			t.Errorf("%d parts after %v in which nothing happened", len(still.Parts), time.Since(began))
		}
	})
}

// TestEventsOutliveTheServersTimeouts: the server's timeouts are for requests. A stream goes on for hours.
func TestEventsOutliveTheServersTimeouts(t *testing.T) {
	serving(t, Options{}, func(s *served) {
		r := s.open()
		for began := time.Now(); time.Since(began) < 3*time.Hour; {
			if _, ok := r.next(); !ok {
				t.Fatalf("the stream ended after %v", time.Since(began))
			}
		}
	})
}

// TestEventsAreBounded: more streams than allowed are refused, and one that ends makes room.
func TestEventsAreBounded(t *testing.T) {
	serving(t, Options{Streams: 2}, func(s *served) {
		first, second := s.open(), s.open()
		first.next()
		second.next()
		if r := s.open(); r.resp.StatusCode != http.StatusServiceUnavailable || r.resp.Header.Get("Retry-After") == "" {
			t.Errorf("a third stream: %s, %v", r.resp.Status, r.resp.Header)
		}
		first.conn.Close()
		synctest.Wait()
		if r := s.open(); r.resp.StatusCode != http.StatusOK {
			t.Errorf("after one has gone: %s", r.resp.Status)
		}
	})
}

// TestSlowReader: a reader who takes nothing is given up, and never holds up the learner or another reader.
func TestSlowReader(t *testing.T) {
	serving(t, Options{Streams: 2}, func(s *served) {
		slow := s.dial()
		fmt.Fprintf(slow, "GET /events HTTP/1.1\r\nHost: test\r\n\r\n") // and reads nothing
		synctest.Wait()
		began := time.Now()
		s.learnNow(500)
		if time.Since(began) != 0 {
			t.Errorf("the learner waited for %v", time.Since(began))
		}
		r := s.open()
		if u, ok := r.next(); !ok || !strings.Contains(u.Parts["tiles"], "<span class=\"value\">500</span>") {
			t.Errorf("another reader: %t, %q", ok, u.Parts["tiles"])
		}
		if time.Since(began) != 0 {
			t.Errorf("another reader waited for %v", time.Since(began))
		}
		for time.Since(began) < 6*time.Second {
			s.report(1)
			r.next()
		}
		if other := s.open(); other.resp.StatusCode != http.StatusOK {
			t.Errorf("after its patience the slow reader still has its place: %s", other.resp.Status)
		}
	})
}

// learnNow commits rounds at once.
func (s *served) learnNow(rounds int) {
	s.Resumed(s.progress())
	for range rounds {
		s.announce()
		s.commit(time.Second)
	}
}

// TestEventsEndWithTheServer: an open page shows how the learner ended, and the server stops at once.
func TestEventsEndWithTheServer(t *testing.T) {
	serving(t, Options{}, func(s *served) {
		s.learnNow(3)
		r := s.open()
		r.next()
		s.Stop(Stop{How: Interrupted})
		began := time.Now()
		stopped := make(chan error, 1)
		go func() { stopped <- s.stop() }()
		if u, ok := r.next(); !ok || !strings.Contains(u.Parts["verdict"], "The learner was stopped.") {
			t.Errorf("the last event: %t, %q", ok, u.Parts["verdict"])
		}
		if _, more := r.next(); more {
			t.Error("the stream goes on")
		}
		if err := <-stopped; err != nil || time.Since(began) >= time.Second {
			t.Errorf("stopping took %v: %v", time.Since(began), err)
		}
	})
}

// TestNewestModelIsRead: a page shows the weights of the newest round, and does not read the model when nothing is new.
func TestNewestModelIsRead(t *testing.T) {
	serving(t, Options{}, func(s *served) {
		s.learnNow(1)
		reads := 0
		read := s.Board.config.Model
		s.Board.config.Model = func(ctx context.Context) (m Model, err error) {
			reads++
			return read(ctx)
		}
		r := s.open()
		r.next()
		r.next() // a beat later
		if reads != 1 {
			t.Errorf("the model of one round was read %d times", reads)
		}
		s.announce()
		s.commit(time.Second)
		if u, _ := r.next(); !strings.Contains(u.Parts["weights"], "after round 2") || reads != 2 {
			t.Errorf("%d reads, weights %q", reads, u.Parts["weights"])
		}
		s.Stop(Stop{How: Interrupted})
		s.round++
		s.Resumed(s.progress())
		r.next()
		if reads != 2 {
			t.Error("the model of a learner that has stopped was read")
		}
	})
}
