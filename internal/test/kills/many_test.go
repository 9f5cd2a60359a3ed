package kills

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/procs"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A crowd runs many tasks with one learner process and two stage processes for all, and a publisher for each.
type crowd struct {
	t          testing.TB
	dir        string
	server     []*procs.Process // learner, stage, stage: killed and started again
	publishers []*procs.Process
	rng        *rand.Rand
}

func (c *crowd) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}

func (c *crowd) file(i int) string { return c.path("tasks", fmt.Sprintf("t%d.yaml", i)) }

func (c *crowd) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

const crowdRows = 60

// declare writes the file of a task as an operator does: under another name first.
func (c *crowd) declare(i int) {
	c.t.Helper()
	text := bytes.Replace(fmt.Appendf(nil, declaration, 48, 12, 9, 4, "proved"), []byte("name: kills"), fmt.Appendf(nil, "name: t%d", i), 1)
	c.must(os.WriteFile(c.file(i)+".new", text, 0o600))
	c.must(os.Rename(c.file(i)+".new", c.file(i)))
}

// status asks the state folder of a task; it returns false where nothing answers.
func (c *crowd) status(i int) (s statedir.Status, ok bool) {
	c.t.Helper()
	dir := c.path("state", fmt.Sprintf("t%d", i))
	doc, err := statedir.Ask(c.t.Context(), statedir.Where{StateDir: dir}, statedir.AskStatus)
	if err != nil {
		return s, false // not begun, or its process was just killed
	}
	decode(c.t, doc, &s)
	return s, true
}

// TestManyTasks: tasks are added, taken away and brought back while their learner and stages are killed and publishers die.
// All end; in each nobody is counted twice, and nobody is lost who was told to be counted.
func TestManyTasks(t *testing.T) {
	tasks, kills := 4, 6
	if longtest.On() {
		tasks, kills = 40, 400
	}
	c := &crowd{t: t, dir: t.TempDir(), rng: rand.New(rand.NewPCG(seed(t), 1<<35))}
	c.must(os.Mkdir(c.path("tasks"), 0o700))
	broker := procs.StartServer(t, programs, procs.ServerOptions{})
	c.server = append(c.server, programs.Process(t, "learner", programs.Learner, "run", "--tasks", c.path("tasks"), "--nats",
		broker.URL(), "--state", c.path("state"), "--identity", c.path("learner.key"), "--report-bytes", "4194304", "--nats-wait", "2m"))
	for i := range 2 {
		c.server = append(c.server, programs.Process(t, fmt.Sprint("stage", i), programs.Ingest, "shuffle", "--tasks", c.path("tasks"),
			"--nats", broker.URL(), "--identity", c.path("stage.key"), "--state", c.path("marks"), "--lease", "1s", "--nats-wait", "2m"))
	}
	var rows bytes.Buffer
	for row := range crowdRows {
		fmt.Fprintf(&rows, "%+d %d:1\n", 2*(row%2)-1, 1+row%3)
	}
	c.must(os.WriteFile(c.path("rows.libsvm"), rows.Bytes(), 0o600))
	for i := range tasks {
		c.publishers = append(c.publishers, programs.Process(t, fmt.Sprint("publisher", i), programs.Ingest, "publish", "--task",
			fmt.Sprint("t", i), "--nats", broker.URL(), "--data", c.path("rows.libsvm"), "--state", c.path(fmt.Sprint("devices", i)),
			"--json", "--nats-wait", "2m"))
	}
	for i := range tasks / 2 {
		c.declare(i)
	}
	for _, p := range append(c.server, c.publishers...) {
		c.must(p.Start())
	}
	c.disturb(tasks, kills)
	c.finish(tasks)
	for i := range tasks {
		c.check(i)
	}
}

// pass lets milliseconds pass.
func (c *crowd) pass(ms int) { <-time.After(time.Duration(ms) * time.Millisecond) }

// disturb kills processes, brings the second half of the tasks, and takes tasks away for a while.
func (c *crowd) disturb(tasks, kills int) {
	c.t.Helper()
	declared := tasks / 2
	for k := range kills {
		c.pass(200 + c.rng.IntN(1500))
		var p *procs.Process
		if c.rng.IntN(3) == 0 {
			p = c.publishers[c.rng.IntN(tasks)]
		} else {
			p = c.server[c.rng.IntN(len(c.server))]
		}
		p.Kill()
		if declared < tasks && k%max(1, 2*kills/tasks/2) == 0 {
			c.declare(declared)
			declared++
		}
		away := c.rng.IntN(declared)
		c.must(os.Remove(c.file(away)))
		c.pass(c.rng.IntN(2500))
		c.declare(away)
		if !p.Running() {
			c.must(p.Start())
		}
	}
	for ; declared < tasks; declared++ {
		c.declare(declared)
	}
}

// finish waits until every task has ended and every publisher has settled its rows.
func (c *crowd) finish(tasks int) {
	c.t.Helper()
	ctx := procs.Within(c.t, patience)
	for i := 0; i < tasks; {
		if s, ok := c.status(i); ok && s.Ended {
			i++
			continue
		}
		if ctx.Err() != nil {
			c.t.Fatalf("task t%d has not ended", i)
		}
		c.pass(100)
	}
	for i, p := range c.publishers {
		if exit, err := p.Wait(ctx); err != nil || exit != (procs.Exit{}) {
			c.t.Errorf("publisher %d: %v, %v", i, exit, err)
		}
	}
	for _, p := range c.server {
		if !p.Running() {
			c.t.Errorf("%s ended by itself", p.Name)
			continue
		}
		c.must(p.Terminate())
		if _, err := p.Wait(ctx); err != nil {
			c.t.Error(err)
		}
	}
}

// check compares what the learner of a task counted with what its publisher knows.
func (c *crowd) check(i int) {
	c.t.Helper()
	status, ok := c.status(i)
	if !ok {
		c.t.Fatalf("t%d has no status", i)
	}
	store, err := filestore.Open(filestore.Path(c.path(fmt.Sprint("devices", i)), stream.Task(fmt.Sprint("t", i))))
	c.must(err)
	defer store.Close()
	keys := make([]participation.Key, crowdRows)
	for row := range keys {
		keys[row] = participation.RowKey(c.path("rows.libsvm"), int64(row))
	}
	records, err := store.Read(keys)
	c.must(err)
	is := map[participation.State]uint64{}
	for _, r := range records {
		is[r.State]++
	}
	if n := is[participation.Charged]; n != 0 {
		c.t.Errorf("t%d: %d rows are not settled", i, n)
	}
	counted, unknown := is[participation.Counted], is[participation.Unknown]
	if status.Users < counted || status.Users > counted+unknown {
		c.t.Errorf("t%d: the learner counted %d users; the publisher knows of %d, and not what became of %d", i, status.Users,
			counted, unknown)
	}
	if status.Users < 4*9 || status.EpsilonSpent <= 0 || status.EpsilonSpent > status.EpsilonBudget {
		c.t.Errorf("t%d: %d users, epsilon %v of %v", i, status.Users, status.EpsilonSpent, status.EpsilonBudget)
	}
}
