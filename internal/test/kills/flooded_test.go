package kills

import (
	"bufio"
	"bytes"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/panlearn/panlearn/internal/test/procs"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/wire"
)

// A flooder sends to one task, as fast as the broker stores it, what a device may send: garbage, reports of another task,
// reports of this one with everything right but what is sealed, and requests for places.
type flooder struct {
	task   stream.Task
	hash   stream.Hash // of its Task
	other  stream.Task // the task of the reports that it receives
	mu     sync.Mutex
	sample []byte // a report of another task
	sent   atomic.Int64
}

func (f *flooder) hear(m *nats.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sample == nil {
		f.sample = bytes.Clone(m.Data)
	}
}

// flood sends until ctx is done.
func (f *flooder) flood(ctx context.Context, url string, seed uint64) error {
	conn, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Subscribe(stream.Prefix+"."+string(f.other)+".report.>", f.hear); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := 0; ctx.Err() == nil; i++ {
		round, attempt := stream.Round(1), stream.Attempt(1) // mostly what is open
		if i%5 == 0 {
			round, attempt = stream.Round(rng.Uint64N(3)+1), stream.Attempt(rng.Uint64N(3)+1)
		}
		m := nats.NewMsg(f.task.Report(round, attempt))
		f.mu.Lock()
		m.Data = f.sample
		f.mu.Unlock()
		switch {
		case i%8 == 0 || m.Data == nil:
			m.Data = make([]byte, rng.IntN(400))
		case i%2 == 1:
			if m.Data, err = f.forged(m.Data); err != nil {
				return err
			}
		case i%8 == 2:
			m.Subject, m.Reply = f.task.Place(round, attempt), conn.NewInbox()
		}
		if i%256 == 0 { // the broker stores it, or says that the queue is full: what it cannot store at all floods nobody
			if _, err = conn.RequestMsg(m, patience); errors.Is(err, nats.ErrNoResponders) {
				err = nil // there is no stream yet
			}
		} else {
			err = conn.PublishMsg(m)
		}
		if err != nil {
			return err
		}
		f.sent.Add(1)
	}
	return nil
}

// forged makes a report of another task one of this task, which nobody can open.
func (f *flooder) forged(other []byte) ([]byte, error) {
	r := new(wire.Report)
	if err := stream.ReadReport(other, r); err != nil {
		return nil, err
	}
	r.TaskHash = f.hash[:]
	for _, id := range r.Ids {
		_, _ = crand.Read(id) // never fails
	}
	_, _ = crand.Read(r.Ciphertext)
	return stream.Marshal(r)
}

// hashOf returns the hash of a task that is announced.
func (c *crowd) hashOf(ctx context.Context, url string, task stream.Task) stream.Hash {
	c.t.Helper()
	conn, err := natsjs.Connect(natsjs.ConnectConfig{URL: url, Log: slog.New(slog.DiscardHandler)})
	c.must(err)
	defer conn.Close()
	for {
		m, err := conn.Get(ctx, task.Task())
		var signed wire.Signed
		if err == nil {
			c.must(stream.Unmarshal(m.Data, &signed))
			return stream.HashOf(signed.Body)
		}
		if ctx.Err() != nil {
			c.t.Fatal(err)
		}
		c.pass(100)
	}
}

// refused returns how many messages of a task the stage has examined and not counted, and how many of these did not open.
func (c *crowd) refused(process int, task stream.Task) (n, sealed float64) {
	c.t.Helper()
	resp, err := http.Get("http://" + c.at[process] + "/metrics")
	if err != nil {
		return 0, 0 // it does not listen yet
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		line, outcome := lines.Text(), 0.0
		if strings.HasPrefix(line, "panlearn_stage_reports_total{") && strings.Contains(line, fmt.Sprintf("task=%q", task)) &&
			!strings.Contains(line, `outcome="accepted"`) {
			_, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &outcome)
			c.must(err)
			if n += outcome; strings.Contains(line, `outcome="undecryptable"`) {
				sealed = outcome
			}
		}
	}
	return n, sealed
}

// outcomes returns how many rows of a task the publisher knows to be counted, and how many it knows not to be.
func (c *crowd) outcomes(i int) (is map[participation.State]uint64) {
	c.t.Helper()
	store, err := filestore.Open(filestore.Path(c.path("devices"), stream.Task(fmt.Sprint("t", i))))
	c.must(err)
	defer store.Close()
	keys := make([]participation.Key, crowdRows)
	for row := range keys {
		keys[row] = participation.RowKey(c.rows(i), int64(row))
	}
	records, err := store.Read(keys)
	c.must(err)
	is = map[participation.State]uint64{}
	for _, r := range records {
		is[r.State]++
	}
	return is
}

// TestFloodedTask: one of twenty tasks of the same learner and stage is flooded before the first user of any of them
// reports, and until the nineteen others have ended. Each of these releases all its rounds, counts every user that its
// publisher reports as counted, and leaves nobody in doubt; and when the flood is over, so does the flooded one.
func TestFloodedTask(t *testing.T) {
	const tasks, flooders = 20, 4
	c := &crowd{t: t, dir: t.TempDir(), alive: map[int]bool{}, cut: map[int]bool{}}
	c.must(os.Mkdir(c.path("tasks"), 0o700))
	c.must(os.WriteFile(c.path("rows.libsvm"), crowdOfRows(), 0o600))
	broker := procs.StartServer(t, programs, procs.ServerOptions{})
	c.serve(broker.URL(), "learner", programs.Learner, "run", "--state", c.path("state"), "--identity", c.path("learner.key"),
		"--report-bytes", "4194304")
	c.serve(broker.URL(), "stage", programs.Ingest, "shuffle", "--identity", c.path("stage.key"), "--state", c.path("marks"))
	c.serve(broker.URL(), "publisher", programs.Ingest, "publish", "--data", c.path("rows-{task}.libsvm"), "--state", c.path("devices"))
	for range tasks + 1 {
		c.add()
	}
	c.must(os.Remove(c.rows(0)))     // nobody reports to it yet
	c.must(os.Remove(c.rows(tasks))) // of this one the flooder has received a report, and needs no more
	for _, p := range c.server[:2] {
		c.must(p.Start())
	}
	ctx := procs.Within(t, 2*patience)
	wait := func(what string, done func() bool) {
		t.Helper()
		for !done() {
			if ctx.Err() != nil {
				t.Fatalf("not before the end of patience: %s", what)
			}
			c.pass(100)
		}
	}
	f := &flooder{task: "t0", hash: c.hashOf(ctx, broker.URL(), "t0"), other: stream.Task(fmt.Sprint("t", tasks))}
	flooding, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for i := range uint64(flooders) {
		running.Go(func() {
			if err := f.flood(flooding, broker.URL(), i); err != nil && flooding.Err() == nil {
				t.Error(err)
			}
		})
	}
	heard := programs.Process(t, "heard", programs.Ingest, "publish", "--task", string(f.other), "--format", "libsvm", "--nats", broker.URL(),
		"--data", c.path("rows.libsvm"), "--state", c.path("heard"))
	c.must(heard.Start())
	examined := func() float64 { n, _ := c.refused(1, "t0"); return n }
	wait("the stage opens forged reports", func() bool {
		_, sealed := c.refused(1, "t0")
		return sealed > 100
	})
	before, already := examined(), f.sent.Load()
	_, opened := c.refused(1, "t0")
	begun := time.Now()
	c.must(c.server[2].Start())
	ended := func(i int) bool {
		s, ok := c.status(i)
		return ok && s.Ended
	}
	quiet := 1
	wait("the others end", func() bool {
		for quiet < tasks && ended(quiet) {
			quiet++
		}
		return quiet == tasks
	})
	took, sent, looked := time.Since(begun), f.sent.Load()-already, examined()-before
	_, sealed := c.refused(1, "t0")
	sealed -= opened
	if s, ok := c.status(0); !ok || s.Ended || s.Users != 0 {
		t.Errorf("the flooded task: %+v, with nobody who reported", s)
	}
	stop()
	running.Wait()
	c.must(os.Symlink("rows.libsvm", c.rows(0)))
	wait("the flooded task ends", func() bool { return ended(0) })
	wait("the publisher has settled all rows", func() bool {
		settled := 0
		for _, row := range c.listed(2) {
			if row.State == "ended" {
				settled++
			}
		}
		return settled == tasks
	})
	c.must(c.server[2].Terminate())
	if _, err := c.server[2].Wait(ctx); err != nil {
		t.Error(err)
	}
	for i := range tasks {
		s, _ := c.status(i)
		is := c.outcomes(i)
		if s.Steps != 4 || s.Users < 4*9 || s.Users != is[participation.Counted] || is[participation.Charged]+is[participation.Unknown] != 0 {
			t.Errorf("t%d: %d steps and %d users; the publisher knows of %v; want 4 steps, and the same users", i, s.Steps, s.Users, is)
		}
	}
	if looked == 0 || sent == 0 {
		t.Errorf("while the others reported, %d messages of the flood were sent and %.0f examined", sent, looked)
	}
	fmt.Printf("MEASURED a flood of one task: %d messages sent, %.0f examined and %.0f of them opened in vain while 19 others ended in %v\n", sent,
		looked, sealed, took.Round(100*time.Millisecond))
}
