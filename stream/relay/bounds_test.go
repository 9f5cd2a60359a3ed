package relay_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/relay"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
)

// poll waits for something that the tag of a state does not say, and returns the status.
func (s *site) poll(ctx context.Context, tag, header string) *httptest.ResponseRecorder {
	q := s.request(http.MethodGet, "rounds/latest?wait=55&seen="+tag, nil).WithContext(ctx)
	if header != "" {
		q.Header.Set("X-Forwarded-For", header)
	}
	return s.do(q)
}

// tag returns the tag of the present state.
func (s *site) tag() string {
	s.t.Helper()
	state, err := relayhttp.ParseState(s.do(s.request(http.MethodGet, "rounds/latest", nil)).Body.Bytes())
	must(s.t, err)
	return state.Tag()
}

// waiting waits until so many requests wait.
func (s *site) waiting(n int) {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for s.relay.Waiting() != n {
		select {
		case <-s.t.Context().Done():
			return
		case <-look.C:
		}
	}
}

// TestPollsAreBounded: one address may wait so many times and all together so many; one more is sent away until later,
// and a record wakes all waiting requests. A header counts where it is named, and its last address alone.
func TestPollsAreBounded(t *testing.T) {
	for _, named := range []bool{false, true} {
		s := newSite(t, func(c *relay.Config) {
			c.PerAddress, c.Waiting = 3, 5
			if named {
				c.AddressHeader = "X-Forwarded-For"
			}
		})
		tag := s.tag()
		var group sync.WaitGroup
		woken := make(chan *httptest.ResponseRecorder, 5)
		begin := func(from string) {
			before := s.relay.Waiting()
			group.Go(func() { woken <- s.poll(t.Context(), tag, from) })
			s.waiting(before + 1)
		}
		for range 3 {
			begin("192.0.2.1, 203.0.113.9")
		}
		want, most := http.StatusTooManyRequests, 3
		if got := s.poll(t.Context(), tag, "203.0.113.9"); got.Code != want || got.Header().Get("Retry-After") == "" {
			t.Errorf("named %t: a fourth request of one address: %d %v", named, got.Code, got.Header())
		}
		if named {
			begin("2001:db8::1")
			begin("2001:db8::2")
			most = 5
			if got := s.poll(t.Context(), tag, "198.51.100.1"); got.Code != http.StatusServiceUnavailable ||
				got.Header().Get("Retry-After") == "" {
				t.Errorf("a sixth request: %d %v", got.Code, got.Header())
			}
		} else if got := s.poll(t.Context(), tag, "198.51.100.1"); got.Code != want {
			t.Errorf("a header that nobody named counts: %d", got.Code)
		}
		s.put(churn.Round(1), "round")
		group.Wait()
		for range most {
			got := <-woken
			state, err := relayhttp.ParseState(got.Body.Bytes())
			if err != nil || got.Code != 200 || state.Round.Round != 1 || state.Tag() == tag {
				t.Errorf("named %t: woken with %d %+v, %v", named, got.Code, state, err)
			}
		}
		if n := s.relay.Waiting(); n != 0 {
			t.Errorf("%d requests wait", n)
		}
	}
}

// A slowBroker reports each read to the test, which decides when it is answered.
type slowBroker struct {
	relay.Broker
	asked  chan struct{}
	answer chan struct{}
}

func (b *slowBroker) Get(ctx context.Context, subject string) (stream.Message, error) {
	b.asked <- struct{}{}
	<-b.answer
	return b.Broker.Get(ctx, subject)
}

// TestReadsAreBounded: one address may read so many records by name at a time, by name or by hash alike; others still
// may, and so may the same address when an answer is out.
func TestReadsAreBounded(t *testing.T) {
	slow := &slowBroker{asked: make(chan struct{}, 4), answer: make(chan struct{})}
	s := newSite(t, func(c *relay.Config) {
		slow.Broker = c.Broker
		c.Broker, c.PerAddress, c.AddressHeader = slow, 2, "X-Forwarded-For"
	})
	read := func(path, from string) *httptest.ResponseRecorder {
		q := s.request(http.MethodGet, path, nil)
		q.Header.Set("X-Forwarded-For", from)
		return s.do(q)
	}
	hash := relayhttp.HashOf([]byte("a task"))
	named := fmt.Sprintf("records/%x?name=task", hash[:])
	answers := make(chan int, 3)
	var group sync.WaitGroup
	begin := func(path, from string) {
		group.Go(func() { answers <- read(path, from).Code })
		<-slow.asked
	}
	begin("task", "203.0.113.9")
	begin(named, "203.0.113.9")
	for _, path := range []string{"task", named} {
		if got := read(path, "203.0.113.9"); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" {
			t.Errorf("a third read, of %s: %d %v", path, got.Code, got.Header())
		}
	}
	begin("task", "203.0.113.10")
	close(slow.answer)
	group.Wait()
	for range 3 {
		if code := <-answers; code != http.StatusOK {
			t.Errorf("a read within the bounds: %d", code)
		}
	}
	if got := read("task", "203.0.113.9"); got.Code != http.StatusOK {
		t.Errorf("a read after the others ended: %d", got.Code)
	}
}

// TestWaitingEnds: who goes away does not wait any more, and a relay that closes lets everybody go.
func TestWaitingEnds(t *testing.T) {
	s := newSite(t, nil)
	tag := s.tag()
	ctx, leave := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { s.poll(ctx, tag, "") })
	s.waiting(1)
	leave()
	group.Wait()
	group.Go(func() { s.poll(t.Context(), tag, "") })
	s.waiting(1)
	s.relay.Close()
	group.Wait()
	if n := s.relay.Waiting(); n != 0 {
		t.Errorf("%d wait", n)
	}
	if got := s.do(s.request(http.MethodGet, "rounds/latest?wait=1", nil)); got.Code == 0 {
		t.Error("no answer of a closed relay")
	}
}

// TestSlowBodies: a body that does not come by its deadline is given up, publishes nothing, and holds nothing.
func TestSlowBodies(t *testing.T) {
	s := newSite(t, nil)
	s.relay.BodyTime(50 * time.Millisecond)
	server := httptest.NewServer(s.relay)
	defer server.Close()
	body := report(100)
	conns := make([]net.Conn, 20)
	for i := range conns {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		must(t, err)
		defer conn.Close()
		conns[i] = conn
		_, err = fmt.Fprintf(conn, "POST /v1/tasks/churn/reports HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"+
			"Content-Length: %d\r\n\r\n%s", len(body), body[:len(body)/2])
		must(t, err)
	}
	for _, conn := range conns {
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("no answer to a slow body: %v", err)
		}
		r.Body.Close()
		if r.StatusCode != http.StatusRequestTimeout {
			t.Errorf("a slow body: %d", r.StatusCode)
		}
	}
	if n := s.stored(); n != 0 {
		t.Errorf("%d reports were published", n)
	}
}

// TestBodiesThatNobodyAsksFor: a body that never comes holds no connection, also where nothing reads it.
func TestBodiesThatNobodyAsksFor(t *testing.T) {
	s := newSite(t, nil)
	s.relay.BodyTime(50 * time.Millisecond)
	server := httptest.NewServer(s.relay)
	defer server.Close()
	for _, request := range []string{
		"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000",
		"GET /v1/tasks/churn/rounds/latest HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked",
		"POST /v1/elsewhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000",
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		must(t, err)
		defer conn.Close()
		_, err = fmt.Fprint(conn, request+"\r\n\r\n")
		must(t, err)
		must(t, conn.SetReadDeadline(time.Now().Add(10*time.Second))) // a server that waits never ends it
		if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q holds its connection: %v", request, err)
		}
	}
}

// TestNoAddressIsLogged: whatever goes wrong, no line has who asked.
func TestNoAddressIsLogged(t *testing.T) {
	var log bytes.Buffer
	s := newSite(t, func(c *relay.Config) {
		c.PerAddress, c.AddressHeader = 1, "X-Forwarded-For"
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	tag := s.tag()
	var group sync.WaitGroup
	ctx, leave := context.WithCancel(t.Context())
	group.Go(func() { s.poll(ctx, tag, "203.0.113.9") })
	s.waiting(1)
	s.poll(t.Context(), tag, "203.0.113.9")
	s.broker.Disconnect()
	s.do(s.request(http.MethodPost, "reports", report(100)))
	s.do(s.request(http.MethodPost, "places", relayhttp.Place{Round: 1, Attempt: 1, Request: []byte("x")}.Bytes()))
	leave()
	group.Wait()
	s.relay.Close()
	if text := log.String(); strings.Contains(text, "203.0") || strings.Contains(text, "192.0") || text == "" {
		t.Errorf("the log: %q", text)
	}
}

// TestInventedTasks: names that nobody serves cost a read each and are not followed.
func TestInventedTasks(t *testing.T) {
	s := newSite(t, nil)
	for i := range 2000 {
		q := s.request(http.MethodGet, "", nil)
		q.URL.Path = fmt.Sprintf("/v1/tasks/no-%d/rounds/latest", i)
		if got := s.do(q); got.Code != http.StatusNotFound || got.Body.String() != relayhttp.None+"task" {
			t.Fatalf("%d %q", got.Code, got.Body)
		}
	}
	if n := s.relay.Followed(); n != 0 {
		t.Errorf("%d tasks are followed", n)
	}
	one := newSite(t, func(c *relay.Config) { c.Tasks = []stream.Task{"other"} })
	for _, path := range []string{"task", "rounds/latest"} {
		if got := one.do(one.request(http.MethodGet, path, nil)); got.Code != http.StatusNotFound {
			t.Errorf("%s of a task that is not served: %d", path, got.Code)
		}
	}
	if got := one.do(one.request(http.MethodPost, "reports", report(100))); got.Code != http.StatusNotFound ||
		one.stored() != 0 {
		t.Errorf("a report of a task that is not served: %d", got.Code)
	}
}
