package kills

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/procs"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// A crowd runs many tasks with one learner process, two stage processes and one publisher for all.
type crowd struct {
	t        testing.TB
	dir      string
	server   []*procs.Process // learner, stage, stage, publisher: killed and started again
	at       []string         // the addresses of their endpoints
	rng      *rand.Rand
	declared int          // tasks so far
	alive    map[int]bool // whose files are there, or away for a moment
	cut      map[int]bool // that were asked to end
	lacking  map[int]int  // how often a task was seen to wait for rows that there are not
	starved  map[int]bool // that were ended for it
	nats     string       // URL of the broker
	kills    int
	away     int // times that a file was taken away
	retired  int
	tasks    int // at a time
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

const crowdRows, crowdCohort = 60, 12

// crowdOfRows returns the rows of each task.
func crowdOfRows() []byte {
	var rows bytes.Buffer
	for row := range crowdRows {
		fmt.Fprintf(&rows, "%+d %d:1\n", 2*(row%2)-1, 1+row%3)
	}
	return rows.Bytes()
}

// serve prepares a process for all tasks.
func (c *crowd) serve(url, name, program string, args ...string) {
	c.t.Helper()
	port, err := procs.FreePorts(1)
	c.must(err)
	at := fmt.Sprint("127.0.0.1:", port[0])
	c.server = append(c.server, programs.Process(c.t, name, program, append(args, "--nats", url, "--nats-wait", "2m",
		"--tasks", c.path("tasks"), map[bool]string{true: "--metrics", false: "--http"}[name == "publisher"], at)...))
	c.at = append(c.at, at)
}

// add declares one task more, with rows of its own for the publisher.
func (c *crowd) add() {
	c.t.Helper()
	i := c.declared
	c.must(os.Symlink("rows.libsvm", c.rows(i)))
	c.declared++
	c.alive[i] = true
	c.declare(i)
}

func (c *crowd) rows(i int) string { return c.path(fmt.Sprintf("rows-t%d.libsvm", i)) }

// declare writes the file of a task as an operator does: under another name first.
func (c *crowd) declare(i int) {
	c.t.Helper()
	text := bytes.Replace(fmt.Appendf(nil, declaration, 48, crowdCohort, 9, 4, "proved"), []byte("name: kills"),
		fmt.Appendf(nil, "name: t%d", i), 1)
	c.must(os.WriteFile(c.file(i)+".new", text, 0o600))
	c.must(os.Rename(c.file(i)+".new", c.file(i)))
}

// status reads the state folder of a task. It returns false if there is no reply.
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

// TestManyTasks: tasks are added, ended, taken away and brought back while the processes that serve all of them are
// killed. All end; in each nobody is counted twice, and nobody with the outcome counted is lost. What the processes
// hold without any task is what they held before the first.
func TestManyTasks(t *testing.T) {
	c := &crowd{t: t, dir: t.TempDir(), tasks: 4, rng: rand.New(rand.NewPCG(seed(t), 1<<35)), alive: map[int]bool{},
		cut: map[int]bool{}, lacking: map[int]int{}, starved: map[int]bool{}}
	lasts := 15 * time.Second
	if longtest.On() {
		c.tasks, lasts = 200, *soakFlag
	}
	c.must(os.Mkdir(c.path("tasks"), 0o700))
	broker := procs.StartServer(t, programs, procs.ServerOptions{})
	c.nats = broker.URL()
	c.serve(broker.URL(), "learner", programs.Learner, "run", "--state", c.path("state"), "--identity", c.path("learner.key"),
		"--report-bytes", "4194304")
	for i := range 2 {
		c.serve(broker.URL(), fmt.Sprint("stage", i), programs.Ingest, "shuffle", "--identity", c.path("stage.key"), "--state",
			c.path("marks"), "--lease", "4s")
	}
	c.serve(broker.URL(), "publisher", programs.Ingest, "publish", "--data", c.path("rows-{task}.libsvm"), "--state", c.path("devices"))
	c.must(os.WriteFile(c.path("rows.libsvm"), crowdOfRows(), 0o600))
	for _, p := range c.server {
		c.must(p.Start())
	}
	for range c.tasks / 2 {
		c.add()
	}
	begun := time.Now()
	for time.Since(begun) < lasts {
		c.disturb(time.Since(begun) < lasts*2/3) // the last lives are long, so that leaks show
	}
	ctx := procs.Within(t, patience+lasts)
	for len(c.alive) > 0 {
		c.retire()
		if c.relieve(); ctx.Err() != nil {
			t.Fatalf("%d of %d tasks have not ended: %v", len(c.alive), c.declared, c.alive)
		}
		c.pass(500)
	}
	c.leaks(ctx)
	for _, p := range c.server {
		if !p.Running() {
			t.Errorf("%s ended by itself", p.Name)
			continue
		}
		c.must(p.Terminate())
		if _, err := p.Wait(ctx); err != nil {
			t.Error(err)
		}
	}
	for i := range c.declared {
		c.check(i)
	}
	fmt.Printf("MEASURED many tasks: %v, %d at a time, %d in all, %d asked to end early, "+
		"%d that lacked rows after void rounds, %d kills, %d files taken away and brought back\n",
		time.Since(begun).Round(time.Second), c.tasks, c.declared, len(c.cut), len(c.starved), c.kills, c.away)
}

// pass lets milliseconds pass.
func (c *crowd) pass(ms int) { <-time.After(time.Duration(ms) * time.Millisecond) }

// one returns a task that is alive.
func (c *crowd) one() int {
	all := slices.Sorted(maps.Keys(c.alive))
	return all[c.rng.IntN(len(all))]
}

// disturb kills a process, takes a task away for a while, asks another to end, and sees to it that there are enough.
func (c *crowd) disturb(kill bool) {
	c.t.Helper()
	c.pass(200 + c.rng.IntN(1500))
	p := c.server[c.rng.IntN(len(c.server))]
	if kill {
		p.Kill()
		c.kills++
	}
	away := c.one()
	c.must(os.Remove(c.file(away)))
	c.away++
	c.pass(c.rng.IntN(2500))
	c.declare(away)
	if !p.Running() {
		c.must(p.Start())
	}
	if c.rng.IntN(8) == 0 {
		i := c.one()
		c.cut[i] = true // whether or not it arrives
		out, err := c.learner("finish", "--state", c.path("state", fmt.Sprintf("t%d", i)), "--now")
		if err != nil && !kill {
			c.t.Logf("finish t%d: %v: %s", i, err, out) // it may have no state yet
		}
	}
	c.retire()
	for n := 0; len(c.alive) < c.tasks && n < 1+c.tasks/20; n++ {
		c.add()
	}
}

// retire takes away the tasks that have ended and whose publisher has settled all rows, and their streams: the broker
// sets room aside for each.
func (c *crowd) retire() {
	c.t.Helper()
	for _, row := range c.listed(len(c.server) - 1) {
		var i int
		if _, err := fmt.Sscanf(row.Task, "t%d", &i); err != nil || !row.settled() || !c.alive[i] {
			continue
		}
		if s, ok := c.status(i); ok && s.Ended {
			c.must(os.Remove(c.file(i)))
			delete(c.alive, i)
			c.retired++
			if out, err := c.learner("remove", "--task", row.Task, "--nats", c.nats); err != nil {
				c.t.Errorf("remove %s: %v: %s", row.Task, err, out)
			}
		}
	}
}

// relieve ends the tasks that have lacked rows for a while: their publisher has settled all rows, and the learner waits
// for a cohort. Rounds that deaths made void leave too few rows, for a row that was charged in one is not asked again.
func (c *crowd) relieve() {
	c.t.Helper()
	for _, row := range c.listed(len(c.server) - 1) {
		var i int
		if _, err := fmt.Sscanf(row.Task, "t%d", &i); err != nil || !row.settled() || !c.alive[i] || c.cut[i] {
			continue
		}
		if s, ok := c.status(i); !ok || s.Ended {
			continue
		}
		if c.lacking[i]++; c.lacking[i] < 100 {
			continue
		}
		c.starved[i] = true
		if out, err := c.learner("finish", "--state", c.path("state", row.Task), "--now"); err != nil {
			c.t.Errorf("finish %s, which lacks rows: %v: %s", row.Task, err, out)
		}
	}
}

// learner runs a command of the learner.
func (c *crowd) learner(args ...string) ([]byte, error) {
	return exec.CommandContext(procs.Within(c.t, patience), programs.Learner, args...).CombinedOutput()
}

// A listing describes one task as a process shows it.
type listing struct{ Task, State, Line string }

// settled reports whether a publisher has settled all rows. A task whose file is away for a moment is ended, too.
func (l listing) settled() bool { return l.State == "ended" && l.Line == "All its rows are settled." }

// listed returns the list of tasks that a process serves; nil: it does not answer.
func (c *crowd) listed(process int) []listing {
	resp, err := http.Get("http://" + c.at[process] + "/v1/tasks")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var out struct{ Tasks []listing }
	if json.NewDecoder(resp.Body).Decode(&out) != nil {
		return nil
	}
	return out.Tasks
}

// leaks waits until processes without tasks hold no more than a few goroutines and files.
func (c *crowd) leaks(ctx context.Context) {
	c.t.Helper()
	for i, p := range c.server {
		const most = 30
		for {
			goroutines, files, memory := c.holds(i)
			if goroutines > 0 && goroutines < most && files < most && len(c.listed(i)) == 0 {
				fmt.Printf("MEASURED %s without tasks: %.0f goroutines, %.0f files, %.0f MB, %d lives\n", p.Name, goroutines, files,
					memory/1e6, p.Lives())
				break
			}
			if ctx.Err() != nil {
				c.t.Errorf("%s without tasks: %.0f goroutines, %.0f files, %.0f bytes; tasks %v", p.Name, goroutines, files, memory,
					c.listed(i))
				break
			}
			c.pass(500)
		}
	}
}

// holds returns what a process holds; 0: it does not answer.
func (c *crowd) holds(process int) (goroutines, files, memory float64) {
	resp, err := http.Get("http://" + c.at[process] + "/metrics")
	if err != nil {
		return 0, 0, 0
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		for name, v := range map[string]*float64{"go_goroutines": &goroutines, "process_open_fds": &files,
			"process_resident_memory_bytes": &memory} {
			if text, is := strings.CutPrefix(lines.Text(), name+" "); is {
				_, err = fmt.Sscan(text, v)
				c.must(err)
			}
		}
	}
	return goroutines, files, memory
}

// check compares what the learner of a task counted with what its publisher knows.
func (c *crowd) check(i int) {
	c.t.Helper()
	status, ok := c.status(i)
	if !ok {
		c.t.Fatalf("t%d has no status", i)
	}
	is := c.outcomes(i)
	if n := is[participation.Charged]; n != 0 {
		c.t.Errorf("t%d: %d rows are not settled", i, n)
	}
	counted, unknown := is[participation.Counted], is[participation.Unknown]
	given := uint64(0) // users of a batch that came while its round was given up: protocol.md, rule 12
	if c.cut[i] && strings.Contains(status.EndReason, service.ReasonGivenUp) {
		given = crowdCohort
	}
	if status.Users+given < counted || status.Users > counted+unknown {
		c.t.Errorf("t%d: the learner counted %d users; the publisher knows of %d, and not what became of %d", i, status.Users,
			counted, unknown)
	}
	if c.starved[i] && is[participation.Fresh] != 0 {
		c.t.Errorf("t%d: it lacked rows, and %d never took part", i, is[participation.Fresh])
	}
	short := c.cut[i] || c.starved[i]
	if !short && (status.Users < 4*9 || status.EpsilonSpent <= 0) || status.EpsilonSpent > status.EpsilonBudget {
		c.t.Errorf("t%d: %d users, epsilon %v of %v", i, status.Users, status.EpsilonSpent, status.EpsilonBudget)
	}
}
