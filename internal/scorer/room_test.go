package scorer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/panlearn/panlearn/internal/model"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/learner/task/source"
)

const event = `{"age":1,"job":"a"}`

// A stalled is a body whose time is over.
type stalled struct{}

func (stalled) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// packed returns a text as gzip and as zstd.
func packed(t *testing.T, text string) (gz, zs string) {
	t.Helper()
	var a, b bytes.Buffer
	w := gzip.NewWriter(&a)
	_, err := io.WriteString(w, text)
	must(t, err)
	must(t, w.Close())
	z, err := zstd.NewWriter(&b)
	must(t, err)
	_, err = io.WriteString(z, text)
	must(t, err)
	must(t, z.Close())
	return a.String(), b.String()
}

// TestPackedBodiesAreRefused, whether a header says that they are packed or their bytes do: a small one could unpack to
// any length.
func TestPackedBodiesAreRefused(t *testing.T) {
	s := newSite(t)
	gz, zs := packed(t, "age,job\n1,a\n")
	for _, c := range []struct {
		coding, kind, body string
		want               int
	}{
		{"gzip", "text/csv", gz, 415}, {"zstd", "text/csv", zs, 415}, {"br", "application/json", event, 415},
		{"identity, gzip", "application/json", event, 415}, {"x", "application/json", event, 415},
		{"", "text/csv", gz, 415}, {"", "text/csv", zs, 415}, {"", "application/jsonl", gz, 415}, {"", "application/json", zs, 415},
		{"identity", "application/json", event, 200}, {"Identity", "text/csv", "age,job\n1,a\n", 200}, {"", "application/json", event, 200},
	} {
		got := s.do(http.MethodPost, "/v1/models/prices/predictions", c.kind, strings.NewReader(c.body), "Content-Encoding", c.coding)
		accepts := got.Header().Get("Accept-Encoding")
		if got.Code != c.want || (accepts == "identity") != (c.want == 415) {
			t.Errorf("%q of %s: %d %s, Accept-Encoding %q, want %d", c.coding, c.kind, got.Code, got.Body, accepts, c.want)
		}
	}
}

// fill takes all room, which shows that nobody has any, and leaves so much of its small and its large part. It returns
// what gives the rest back.
func (s *site) fill(t *testing.T, small, large int64) func() {
	t.Helper()
	if !s.room.small.TryAcquire(smallRoom) || !s.room.large.TryAcquire(maxRoom-smallRoom) {
		t.Fatal("room is not given back")
	}
	s.room.small.Release(small)
	s.room.large.Release(large)
	return func() {
		s.room.small.Release(smallRoom - small)
		s.room.large.Release(maxRoom - smallRoom - large)
	}
}

// TestRoomIsByBytes: many small bodies that have not ended keep nobody out, a large one that finds no room is refused
// while a small one is served, and all room is given back.
func TestRoomIsByBytes(t *testing.T) {
	s := newSite(t)
	var waiting sync.WaitGroup
	var ends []*io.PipeWriter
	codes := make(chan int, 1000)
	for range cap(codes) {
		r, w := io.Pipe()
		ends = append(ends, w)
		waiting.Go(func() { codes <- s.do(http.MethodPost, "/v1/models/prices/predictions", "application/json", r).Code })
		_, err := io.WriteString(w, event) // it is read: the request holds its room
		must(t, err)
	}
	if got := s.post("prices", "application/json", event); got.Code != http.StatusOK {
		t.Errorf("beside %d small bodies: %d %s", len(ends), got.Code, got.Body)
	}
	for _, w := range ends {
		must(t, w.Close())
	}
	waiting.Wait()
	for range cap(codes) {
		if code := <-codes; code != http.StatusOK {
			t.Fatalf("a small body: %d", code)
		}
	}
	const left = 1 << 20
	leave := s.fill(t, smallShare+firstRoom, left) // the large body below holds its small share while it is refused
	large := "[" + strings.Repeat(" ", 2*left) + event + "]"
	for body, want := range map[string]int{large: http.StatusServiceUnavailable, event: http.StatusOK} {
		got := s.post("prices", "application/json", body)
		if got.Code != want || (got.Header().Get("Retry-After") != "") != (want == http.StatusServiceUnavailable) {
			t.Errorf("%d bytes where %d are left: %d, want %d", len(body), left, got.Code, want)
		}
	}
	leave()
	if got := s.post("prices", "application/json", large); got.Code != http.StatusOK {
		t.Errorf("where there is room: %d %s", got.Code, got.Body)
	}
	s.fill(t, 0, 0)()
}

// TestLargeBodiesKeepNoSmallOneOut: while large bodies that do not end hold all the room that they can, others like them
// are refused, and small ones are served.
func TestLargeBodiesKeepNoSmallOneOut(t *testing.T) {
	s := newSite(t)
	var waiting sync.WaitGroup
	var ends []*io.PipeWriter
	codes := make(chan int, 5)
	leave := s.fill(t, smallRoom, 2*maxBody) // for two of them
	blank := strings.Repeat(" ", maxBody-len(event))
	for range cap(codes) {
		r, w := io.Pipe()
		ends = append(ends, w)
		waiting.Go(func() {
			codes <- s.do(http.MethodPost, "/v1/models/prices/predictions", "application/json", r).Code
			r.Close() // of a refused one nobody reads the rest
		})
		_, _ = io.WriteString(w, blank)
	}
	for range 100 {
		if got := s.post("prices", "application/json", event); got.Code != http.StatusOK {
			t.Fatalf("beside large bodies: %d %s", got.Code, got.Body)
		}
	}
	for _, w := range ends {
		_, _ = io.WriteString(w, event)
		must(t, w.Close())
	}
	waiting.Wait()
	got := map[int]int{}
	for range cap(codes) {
		got[<-codes]++
	}
	if got[http.StatusOK] != 2 || got[http.StatusServiceUnavailable] != 3 {
		t.Errorf("%v of %d large bodies", got, cap(codes))
	}
	leave()
	s.fill(t, 0, 0)()
}

// TestLongAnswersAreRefused before they take more room than an answer may have, or than there is.
func TestLongAnswersAreRefused(t *testing.T) {
	s := newSite(t)
	line := bytes.Repeat([]byte("x"), 1<<20-1)
	line = append(line, '\n')
	for _, kind := range []shape{lines, list} {
		room := &share{of: s.room}
		out := &answer{shape: kind, share: room}
		var err error
		n := 0
		for ; err == nil && n < 100; n++ {
			_, err = out.Write(line)
		}
		if err != errLong || n != maxAnswer>>20 && n != maxAnswer>>20+1 || room.held > maxAnswer {
			t.Errorf("after %d lines of 1 MiB: %v, %d bytes held", n, err, room.held)
		}
		room.release()
		leave := s.fill(t, smallRoom, 4<<20)
		room = &share{of: s.room}
		out = &answer{shape: kind, share: room}
		for err = nil; err == nil; {
			_, err = out.Write(line)
		}
		if err != errNoRoom {
			t.Errorf("where 4 MiB are left: %v", err)
		}
		room.release()
		leave()
	}
}

// TestALengthThatIsAnnouncedTakesNoRoom: only bytes that came do.
func TestALengthThatIsAnnouncedTakesNoRoom(t *testing.T) {
	s := newSite(t)
	q := httptest.NewRequest(http.MethodPost, "/", stalled{})
	q.ContentLength = maxBody
	room := &share{of: s.room}
	if _, err := room.body(q); err == nil || room.held > firstRoom {
		t.Errorf("%v, %d bytes held", err, room.held)
	}
	q.ContentLength = maxBody + 1
	if _, err := room.body(q); err != errLarge {
		t.Errorf("%v, want %v", err, errLarge)
	}
}

// A pipes is a listener of pipes in memory.
type pipes struct{ conns chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (pipes) Close() error   { return nil }
func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowBodyIsToldSo: a body that does not end within its time gets 408, and the connection ends.
func TestSlowBodyIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		at := pipes{make(chan net.Conn, 1)}
		server := &http.Server{Handler: s}
		done := make(chan error, 1)
		go func() { done <- server.Serve(at) }()
		near, far := net.Pipe()
		at.conns <- far
		began := time.Now()
		_, err := fmt.Fprintf(near, "POST /v1/models/prices/predictions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"+
			"Content-Length: 100\r\n\r\n{")
		must(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(near), nil)
		must(t, err)
		if answer.StatusCode != http.StatusRequestTimeout || !answer.Close || time.Since(began) != slowest {
			t.Errorf("status %d, close %v, after %v", answer.StatusCode, answer.Close, time.Since(began))
		}
		must(t, near.Close())
		close(at.conns)
		<-done
		must(t, server.Shutdown(context.Background()))
	})
}

// TestLinesAreThoseOfPredict: the scorer answers a body of jsonl with the very bytes that `learner predict` writes for a
// file of it, whatever its rows are.
func TestLinesAreThoseOfPredict(t *testing.T) {
	s := newSite(t)
	data := event + "\n\n" +
		`{"age": 9007199254740993, "job": "a"}` + "\n" + // beyond what a float64 holds: a number all the same
		`{"age": "5e1", "job": true, "more": {"age": [1]}}` + "\r\n" +
		`{"age": 5, "age": 6, "job": "a"}` + "\n" +
		`not JSON` + "\n" + `[1]` + "\n" + event + " {}\n" + event + event + "\n" + `{"age": 1` + "\n" +
		`{"age": null, "job": "b", "y": [1]}` + "\n" +
		`{"job": "a", "age": "` + strings.Repeat("1", task.DefaultMaxLine) + `"}` + "\n" +
		`{"job": "b", "age": 3}`
	file := filepath.Join(t.TempDir(), "events.jsonl")
	must(t, os.WriteFile(file, []byte(data), 0o600))
	snapshot, err := model.Parse(s.shelf.doc)
	must(t, err)
	p, err := model.NewPredictor(snapshot, task.JSONL)
	must(t, err)
	rows, err := source.OpenFitting(file, p.Features.Unlabelled())
	must(t, err)
	defer rows.Close()
	var want bytes.Buffer
	table, err := model.NewTable(&want, model.JSONL, p)
	must(t, err)
	count, err := p.Score(rows.All(), table, model.ScoreOptions{})
	must(t, err)
	got := s.post("prices", "application/jsonl", data)
	if got.Code != http.StatusOK || got.Body.String() != want.String() {
		t.Errorf("%d\n%s, want\n%s", got.Code, got.Body, &want)
	}
	if invalid := got.Header().Get(invalidHeader); invalid != fmt.Sprint(count.Invalid) || count.Invalid < 5 || count.Rows != 12 {
		t.Errorf("%s invalid ones, want %+v", invalid, count)
	}
	if got := s.post("vectors", "application/jsonl", "{\"value\":[1,0,0]}\n\n{\"value\":\n"+`{"value":[0,1,0]}`); got.Code != http.StatusOK ||
		strings.Count(got.Body.String(), "\n") != 3 || !strings.Contains(got.Body.String(), `{"line":3,"score":null}`) ||
		!strings.Contains(got.Body.String(), `{"line":4,"score":2.5`) {
		t.Errorf("of vectors: %d %s", got.Code, got.Body)
	}
}
