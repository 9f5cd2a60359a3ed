package flow

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/runrelay"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/relay"
	"github.com/panlearn/panlearn/stream/relay/relayhttp"
	"github.com/panlearn/panlearn/stream/seal"
)

// relayBroker in the environment makes the test's own program a relay of the broker there, until its input ends.
const relayBroker = "PANLEARN_FLOW_RELAY"

func serveRelay(url string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	metrics, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	config := runrelay.Config{Listening: httpaccess.Listening{HTTP: listener}, Metrics: metrics,
		Broker: run.Broker{ConnectConfig: natsjs.ConnectConfig{URL: url}},
		Relay:  relay.Config{Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	fmt.Println(listener.Addr(), metrics.Addr())
	return runrelay.Run(ctx, config)
}

// A relayed task is one on a broker without learner and stage, with its Task and its first round.
type relayedTask struct {
	broker, at, metrics string // addresses
	pid                 int    // of the relay
	size                int    // of a report
	conn                *natsjs.Conn
}

// startRelay starts broker and relay as processes of their own.
func startRelay(t *testing.T, syncs, memoryReports bool) *relayedTask {
	t.Helper()
	w := &relayedTask{broker: child(t, brokerFolder+"="+t.TempDir(), brokerSyncs+"="+map[bool]string{true: "1"}[syncs]).line}
	var err error
	if w.conn, err = natsjs.Connect(natsjs.ConnectConfig{URL: w.broker}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.conn.Close)
	spec, err := task.Parse(fmt.Appendf(nil, declaration, 10, "hpke", 400_000, 100_000, 100_000, 4), nil)
	if err != nil {
		t.Fatal(err)
	}
	job, err := run.NewJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	body, err := job.Wire()
	if err != nil {
		t.Fatal(err)
	}
	learner, err := seal.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	body.Version, body.Name = stream.Version, string(taskName)
	body.LearnerKey, body.StageKey, body.Life = learner.Public(), learner.Public(), make([]byte, stream.LifeSize)
	if _, err := run.Provision(t.Context(), w.conn, taskName, run.Streams{Body: body, Replicas: 1,
		MemoryReports: memoryReports}); err != nil {
		t.Fatal(err)
	}
	data, err := learner.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	for subject, record := range map[string][]byte{taskName.Task(): data, taskName.Round(1): bytes.Repeat([]byte{1}, 1024)} {
		if _, err := w.conn.PutOnce(t.Context(), subject, record); err != nil {
			t.Fatal(err)
		}
	}
	sizes, err := manifest.ReportSizes(body)
	if err != nil {
		t.Fatal(err)
	}
	w.size = sizes[0]
	c := child(t, relayBroker+"="+w.broker)
	w.pid = c.pid
	w.at, w.metrics, _ = strings.Cut(c.line, " ")
	return w
}

// A process of this program that plays another part: what it printed first, and its id.
type part struct {
	line string
	pid  int
}

func child(t *testing.T, env ...string) part {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		input.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return part{strings.TrimSpace(line), cmd.Process.Pid}
}

// resident returns the most memory that a process ever had, in bytes.
func resident(t *testing.T, pid int) (most int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Log("NOT RUN: the memory of a process: no /proc")
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &most); err == nil {
			return most << 10
		}
	}
	t.Error("no VmHWM")
	return 0
}

// TestRelayHoldsThoseWhoWait: a relay holds many connections that wait for a record, each of one request, from addresses
// with as many as one may have, in less than 1 GiB; a record wakes them all.
func TestRelayHoldsThoseWhoWait(t *testing.T) {
	n := 500
	if longtest.Run(t, "20,000 waiting connections instead of 500") {
		n = relay.DefaultWaiting
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		if room := int(limit.Max) - 100; room < n {
			t.Logf("this machine lets a process have %d files: %d connections", limit.Max, room)
			n = room
		}
	}
	w := startRelay(t, false, true)
	at := "http://" + w.at + relayhttp.Path + string(taskName) + "/rounds/latest"
	first, err := http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(first.Body)
	first.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	state, err := relayhttp.ParseState(data)
	if err != nil {
		t.Fatal(err)
	}
	conns := make([]net.Conn, n)
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
	}()
	for i := range conns {
		address := i / relay.DefaultPerAddress
		from := &net.TCPAddr{IP: net.IPv4(127, 1, byte(address>>8), byte(address))}
		if conns[i], err = (&net.Dialer{LocalAddr: from}).DialContext(t.Context(), "tcp", w.at); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		if _, err := fmt.Fprintf(conns[i], "GET %s%s/rounds/latest?wait=55&seen=%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
			relayhttp.Path, taskName, state.Tag()); err != nil {
			t.Fatal(err)
		}
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for want := fmt.Sprintf("panlearn_relay_waiting_requests %d\n", n); !strings.Contains(w.scrape(t), want); {
		<-look.C
	}
	held := resident(t, w.pid)
	if _, err := w.conn.PutOnce(t.Context(), taskName.Round(2), []byte("news")); err != nil {
		t.Fatal(err)
	}
	woken := 0
	for i, c := range conns {
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if s, wrong := relayhttp.ParseState(body); err == nil && wrong == nil && s.Round.Round == 2 {
			woken++
		}
	}
	most := resident(t, w.pid)
	t.Logf("%d connections waited, all woken: %t; the relay took %.1f MB before the record, %.1f MB after it: %.1f kB each",
		n, woken == n, float64(held)/1e6, float64(most)/1e6, float64(most)/1e3/float64(n))
	if woken != n || most > 1<<30 {
		t.Errorf("%d of %d woken, %d bytes", woken, n, most)
	}
}

// scrape returns the relay's metrics; numbers of a million and more are not looked for.
func (w *relayedTask) scrape(t *testing.T) string {
	t.Helper()
	r, err := http.Get("http://" + w.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReportAndLeave: clients connect, read which round is the newest and the round by its hash, report, and leave, so
// many a second. It prints how far that came; in the short form it checks that all of them are answered. Every client
// that is answered is stored.
func TestReportAndLeave(t *testing.T) {
	rate, span := 200, 2*time.Second
	kinds := []bool{true}
	if longtest.Run(t, "1,157 clients a second for a minute, with reports in files and in memory") {
		rate, span, kinds = 1157, time.Minute, []bool{false, true}
	}
	for _, memory := range kinds {
		w := startRelay(t, !memory, memory)
		var answered, failed atomic.Int64
		var mu sync.Mutex
		var took []time.Duration
		var group sync.WaitGroup
		begun := time.Now()
		total := int(float64(rate) * span.Seconds())
		for i := range total {
			due := begun.Add(time.Duration(float64(i) / float64(rate) * float64(time.Second)))
			<-time.After(time.Until(due))
			group.Go(func() {
				from := time.Now()
				if err := w.visit(i); err != nil {
					if failed.Add(1) == 1 {
						t.Log(err)
					}
					return
				}
				answered.Add(1)
				mu.Lock()
				took = append(took, time.Since(from))
				mu.Unlock()
			})
		}
		offered := time.Since(begun)
		group.Wait()
		slices.Sort(took)
		all := time.Since(begun)
		if len(took) == 0 {
			t.Fatal("nobody was answered")
		}
		t.Logf("reports in memory %t: %d clients offered in %.1f s, %d answered by %.1f s (%.0f a second), %d not; "+
			"a visit took %v at the median, %v at the 99th percentile; the relay's memory %.1f MB, its CPU %v",
			memory, total, offered.Seconds(), answered.Load(), all.Seconds(), float64(answered.Load())/all.Seconds(),
			failed.Load(), took[len(took)/2].Round(100*time.Microsecond), took[len(took)*99/100].Round(100*time.Microsecond),
			float64(resident(t, w.pid))/1e6, spent(w.pid))
		if failed.Load() > 0 && !longtest.On() { // the long form measures how far it comes
			t.Errorf("%d clients were not answered", failed.Load())
		}
		reader, err := w.conn.Reader(t.Context(), taskName)
		if err != nil {
			t.Fatal(err)
		}
		queue, err := reader.Queue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := int64(queue.Messages); got < answered.Load() || got > int64(total) {
			t.Errorf("%d reports are stored, %d were acknowledged as stored, of %d clients", got, answered.Load(), total)
		}
	}
}

// spent returns the processor's time that a process has taken, 0 where the system does not say.
func spent(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var user, system time.Duration
	if len(fields) < 13 {
		return 0
	}
	_, _ = fmt.Sscan(fields[11]+" "+fields[12], (*int64)(&user), (*int64)(&system))
	return (user + system) * 10 * time.Millisecond
}

// visit is one client's: three requests on a connection of its own. Each comes from one of some hundred addresses.
func (w *relayedTask) visit(i int) error {
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 2, 0, byte(i%200+1))}}
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: from.DialContext}}
	defer client.CloseIdleConnections()
	base := "http://" + w.at + relayhttp.Path + string(taskName) + "/"
	get := func(path string) ([]byte, error) {
		r, err := client.Get(base + path)
		if err != nil {
			return nil, err
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err == nil && r.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %d %s", path, r.StatusCode, body)
		}
		return body, err
	}
	data, err := get("rounds/latest")
	if err != nil {
		return err
	}
	state, err := relayhttp.ParseState(data)
	if err != nil {
		return err
	}
	if _, err := get(fmt.Sprintf("records/%s?name=rounds/%d", hex.EncodeToString(state.Round.Hash[:]),
		state.Round.Round)); err != nil {
		return err
	}
	report := relayhttp.Report{Round: 1, Attempt: 1, Data: make([]byte, w.size)}
	_, _ = rand.Read(report.ID[:])
	_, _ = rand.Read(report.Data)
	r, err := client.Post(base+relayhttp.Reports, relayhttp.ContentType, bytes.NewReader(report.Bytes()))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	a, err := relayhttp.ParseAnswer(body)
	if r.StatusCode != http.StatusOK || err != nil || a.ID != report.ID || a.Status != stream.Stored {
		return errors.Join(fmt.Errorf("report: %d %+v %q", r.StatusCode, a, body), err)
	}
	return nil
}
