package obs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
)

// A pipeListener hands out connections inside of a bubble, so that timeouts pass in a fake clock.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{make(chan net.Conn), make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// dial returns a client's end.
func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

// serving runs Serve on the endpoints of a stage inside of a bubble.
func serving(t *testing.T, f func(t *testing.T, l *pipeListener, stop func() error)) {
	synctest.Test(t, func(t *testing.T) {
		registry, _ := newStage(t)
		l := newPipeListener()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Serve(ctx, l, Endpoints(registry, nil, nil, nil)) }()
		stopped := false
		stop := func() error {
			stopped = true
			cancel()
			return <-done
		}
		f(t, l, stop)
		if !stopped {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		cancel()
	})
}

// life returns how long the server keeps a connection on which a client writes the first text, then a byte of
// the second every second, and reads everything that comes, or nothing.
func life(l *pipeListener, first, drip string, reads bool) (answer string, d time.Duration) {
	c := l.dial()
	defer c.Close()
	begun := time.Now()
	var got strings.Builder
	read := make(chan struct{})
	go func() {
		defer close(read)
		if reads {
			_, _ = io.Copy(&got, c)
		}
	}()
	_, err := io.WriteString(c, first)
	for i := 0; err == nil && time.Since(begun) < time.Hour; i++ {
		time.Sleep(time.Second)
		if drip != "" {
			_, err = c.Write([]byte{drip[i%len(drip)]})
		} else if !reads {
			_, err = c.Write([]byte("\n"))
		} else {
			select {
			case <-read:
				err = io.EOF
			default:
			}
		}
	}
	d = time.Since(begun)
	c.Close()
	<-read
	return got.String(), d
}

// TestSlowClients: whatever a client does slowly, or not at all, the server drops it, and serves others meanwhile.
func TestSlowClients(t *testing.T) {
	get := "GET /metrics HTTP/1.1\r\nHost: a\r\n"
	for name, c := range map[string]struct {
		first, drip string
		reads       bool
		most        time.Duration
	}{
		"says nothing":         {"", "", true, 6 * time.Second},
		"half a header":        {get, "", true, 6 * time.Second},
		"a header without end": {get + "X: ", "x", true, 6 * time.Second},
		"a body that never comes": {"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n", "", true,
			11 * time.Second},
		"a body a byte at a time": {"GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n", "x", true,
			11 * time.Second},
		"chunks without end": {"GET /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n",
			true, 11 * time.Second},
		"never reads the answer": {get + "\r\n", "", false, 62 * time.Second},
		"stays after the answer": {get + "\r\n", "", true, 62 * time.Second},
		"not a request":          {"\x16\x03\x01\x00\xa5\x01\r\n\r\n", "", true, 6 * time.Second},
		"an unknown version":     {"GET /metrics HTTP/9.9\r\nHost: a\r\n\r\n", "", true, 6 * time.Second},
		"a line without end":     {"GET /", "a", true, 6 * time.Second},
		"waits for a hundred": {"POST /healthz HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
			"", true, 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			serving(t, func(t *testing.T, l *pipeListener, _ func() error) {
				others := make(chan time.Duration, 50)
				for range cap(others) - 1 {
					go func() {
						_, d := life(l, c.first, c.drip, c.reads)
						others <- d
					}()
				}
				synctest.Wait()
				if code := ask(t, l, "GET", "/healthz"); code != http.StatusOK {
					t.Errorf("meanwhile another gets %d", code)
				}
				_, d := life(l, c.first, c.drip, c.reads)
				others <- d
				for range cap(others) {
					if d := <-others; d > c.most {
						t.Errorf("held for %v, want at most %v", d, c.most)
					}
				}
			})
		})
	}
}

// ask makes a well-behaved request and returns the status code.
func ask(t *testing.T, l *pipeListener, method, path string) int {
	t.Helper()
	c := l.dial()
	defer c.Close()
	go fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", method, path)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	_, _ = io.Copy(io.Discard, r.Body)
	return r.StatusCode
}

// TestSlowClientsDoNotKeepTheProcess: Serve returns soon after its end though clients hold on.
func TestSlowClientsDoNotKeepTheProcess(t *testing.T) {
	serving(t, func(t *testing.T, l *pipeListener, stop func() error) {
		var held []net.Conn
		for range 20 {
			c := l.dial()
			go io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\nGET /metr")
			held = append(held, c)
		}
		synctest.Wait()
		begun := time.Now()
		if err := stop(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("Serve went on for %v", took)
		}
		for _, c := range held {
			_, _ = io.Copy(io.Discard, c) // ends, because the server has closed the other end
			c.Close()
		}
	})
}

// TestRequestBounds: headers above the limit are refused, from any client; a body is never read.
func TestRequestBounds(t *testing.T) {
	serving(t, func(t *testing.T, l *pipeListener, _ func() error) {
		for name, request := range map[string]string{
			"header": "GET /metrics HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
			"many":   "GET /metrics HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 1<<17) + "\r\n",
			"line":   "GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: a\r\n\r\n",
		} {
			c := l.dial()
			written := make(chan int, 1)
			go func() {
				n, _ := io.WriteString(c, request)
				written <- n
			}()
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("%s: %v, %v", name, answer, err)
			}
			c.Close()
			if n := <-written; n > 64<<10 {
				t.Errorf("%s: the server read %d bytes of it", name, n)
			}
		}
	})
}

// TestMethods: GET and HEAD are all that there is.
func TestMethods(t *testing.T) {
	registry, _ := newStage(t)
	h := Endpoints(registry, nil, nil, nil)
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE",
			"PURGE"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader("body of the request")))
			reads := method == "GET" || method == "HEAD"
			if (w.Code == http.StatusOK) != reads || (!reads && w.Code != http.StatusMethodNotAllowed) {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
			if strings.Contains(w.Body.String(), "body of the request") {
				t.Errorf("%s %s repeats what was sent", method, path)
			}
		}
	}
}

// TestMetricsDoNotGrow: nothing that happens adds a series, so there is none about a user, a report or a round.
func TestMetricsDoNotGrow(t *testing.T) {
	learner, m := newLearner(t)
	mixer, o := newStage(t)
	count := func(r *prometheus.Registry) (n int) {
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			n += len(f.GetMetric())
		}
		return n
	}
	play := func(rounds uint64) {
		for r := uint64(1); r <= rounds; r++ {
			o.Lease(true)
			o.Opened(stream.Round(r), stream.Attempt(r))
			for i := range 100 {
				o.Report(stage.Reason(i % (len(stage.Reasons()) + 3))) // unknown ones too
				o.Fill(uint64(i), 100)
			}
			for _, call := range []string{"put", "get", "latest", "fetch", "purge", "mark", "ack", "lease"} {
				o.Failed(call)
			}
			o.Dropped(stream.Round(r), stream.Attempt(r))
			o.Released(stream.Round(r), 100, time.Second)
			o.Voided(stream.Round(r))
			m.recordAnnouncement(r, 100)
			m.recordRound(service.Applied{Progress: service.Progress{Round: r}, Attempt: r, Cohort: 100, BatchUsers: 100,
				Rejects: map[string]uint64{fmt.Sprint("user ", r): r, "range": 1}})
			m.recordRound(service.Applied{Progress: service.Progress{Round: r}, Attempt: r, Cohort: 100, Void: true})
		}
	}
	play(1)
	learnerSeries, stageSeries := count(learner), count(mixer)
	play(1000)
	if l, s := count(learner), count(mixer); l != learnerSeries || s != stageSeries {
		t.Errorf("%d and %d series after one round, %d and %d after a thousand", learnerSeries, stageSeries, l, s)
	}
}
