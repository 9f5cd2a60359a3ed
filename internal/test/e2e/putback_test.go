package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/procs"
)

// putBackLimit bounds the test. Before the rule that rounds which the broker lost make no pause, they alone took
// more than an hour.
const putBackLimit = 5 * time.Minute

// A recovery is a task that loses its broker under load and is put back by the commands of docs/how-to/runbook.md.
type recovery struct {
	t      *testing.T
	ctx    context.Context
	dir    string
	broker *procs.Server
	keys   int
}

func (r *recovery) path(name string) string { return filepath.Join(r.dir, name) }

// run runs a command of learner that must succeed, and returns what it prints.
func (r *recovery) run(args ...string) []byte {
	r.t.Helper()
	p := programs.Process(r.t, "learner-"+args[0], programs.Learner, args...)
	if err := p.Start(); err != nil {
		r.t.Fatal(err)
	}
	exit, err := p.Wait(r.ctx)
	out, _ := p.Stdout()
	if err != nil || exit.Code != 0 {
		log, _ := os.ReadFile(p.Log())
		r.t.Fatalf("learner %v: %v, %v\n%s%s", args, exit, err, out, log)
	}
	return out
}

// gateway starts `ingest publish --http` on a folder of its own, and returns the process and the URL for
// events.
func (r *recovery) gateway(name string) (*procs.Process, string) {
	r.t.Helper()
	ports, err := procs.FreePorts(1)
	if err != nil {
		r.t.Fatal(err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", ports[0])
	p := programs.Process(r.t, name, programs.Ingest, "publish", "-f", r.path("task.yaml"), "--nats", r.broker.URL(),
		"--http", at, "--http-no-token",
		"--http-rate", "100000", "--state", r.path(name), "--nats-wait", "2m")
	r.start(p)
	return p, "http://" + at + "/v1/events?wait=0"
}

func (r *recovery) start(p *procs.Process) {
	r.t.Helper()
	if err := p.Start(); err != nil {
		r.t.Fatal(err)
	}
}

// until posts events to the gateways until the learner has committed a round.
func (r *recovery) until(round uint64, gateways ...string) (steps uint64) {
	r.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for r.ctx.Err() == nil {
		for _, at := range gateways {
			for range 8 {
				r.keys++
				body := fmt.Sprintf(`{"key": "user-%d", "event": {"x0": 0.5, "x1": -0.25, "y": %d}}`, r.keys, 1-2*(r.keys%2))
				if answer, err := http.Post(at, "application/json", strings.NewReader(body)); err == nil {
					answer.Body.Close()
				}
			}
		}
		var s struct {
			Round uint64 `json:"round"`
			Steps uint64 `json:"steps"`
		}
		p := programs.Process(r.t, "status", programs.Learner, "status", "--state", r.path("learner"), "--json")
		r.start(p)
		exit, err := p.Wait(r.ctx)
		out, _ := p.Stdout()
		if err == nil && exit.Code == 0 && json.Unmarshal(bytes.TrimSpace(out), &s) == nil && s.Round >= round {
			return s.Steps
		}
		<-tick.C
	}
	r.t.Fatalf("round %d does not come: %v", round, context.Cause(r.ctx))
	return 0
}

// TestBrokerIsPutBackUnderLoad: the runbook's commands for a broker and a learner that go back to one backup while
// stage and gateways go on: a living stage and a running gateway, then a stage and a gateway that were restarted.
// The task goes on within minutes each time.
func TestBrokerIsPutBackUnderLoad(t *testing.T) {
	r := &recovery{t: t, ctx: procs.Within(t, putBackLimit), dir: t.TempDir(), broker: procs.StartServer(t, programs,
		procs.ServerOptions{})}
	declaration := `
version: 1
name: putback
events: {format: jsonl}
features: {columns: [{column: x0, kind: numeric, min: -1, max: 1}, {column: x1, kind: numeric, min: -1, max: 1}]}
intercept: 0
label: {column: y, positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 1, clip_norm: 0.25}
privacy: {epsilon: 8, delta: 1e-3, trust: shuffle}
schedule: {users: 4000, cohort: 40, minimum_cohort: 10, deadline: 3s, rounds: {max: 100}, plan: proved}
`
	if err := os.WriteFile(r.path("task.yaml"), []byte(declaration), 0o600); err != nil {
		t.Fatal(err)
	}
	learn := func(more ...string) *procs.Process {
		p := programs.Process(t, "learner", programs.Learner, append([]string{"run", "-f", r.path("task.yaml"), "--nats",
			r.broker.URL(), "--state", r.path("learner"),
			"--identity", r.path("learner.key"), "--nats-wait", "2m"}, more...)...)
		r.start(p)
		return p
	}
	mix := programs.Process(t, "stage", programs.Ingest, "shuffle", "--task", "putback", "--nats", r.broker.URL(),
		"--state", r.path("stage"),
		"--identity", r.path("stage.key"), "--nats-wait", "2m", "--lease", "2s")
	keys := programs.Process(t, "keys", programs.Ingest, "keygen", r.path("stage.key"))
	r.start(keys)
	if exit, err := keys.Wait(r.ctx); err != nil || exit.Code != 0 {
		t.Fatal(exit, err)
	}
	learner := learn()
	r.start(mix)
	first, firstAt := r.gateway("first")
	second, secondAt := r.gateway("second")

	before := r.until(3, firstAt, secondAt)
	r.run("backup", "--state", r.path("learner"), "-o", r.path("backup"))
	r.broker.Kill()
	if err := os.CopyFS(r.path("streams"), os.DirFS(r.broker.Store())); err != nil {
		t.Fatal(err)
	}
	if err := r.broker.Restart(); err != nil {
		t.Fatal(err)
	}
	last := uint64(12)
	r.until(last, firstAt, secondAt)
	for _, restarts := range []bool{false, true} {
		if err := learner.Terminate(); err != nil {
			t.Fatal(err)
		}
		if _, err := learner.Wait(r.ctx); err != nil {
			t.Fatal(err)
		}
		if restarts {
			mix.Kill()
			second.Kill()
		}
		r.broker.Kill()
		for _, err := range []error{os.RemoveAll(r.broker.Store()), os.CopyFS(r.broker.Store(), os.DirFS(r.path("streams"))),
			os.RemoveAll(r.path("learner")), r.broker.Restart(),
			r.broker.WaitHealthy(r.ctx)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		r.run("restore", r.path("backup"), "--state", r.path("learner"), "--nats", r.broker.URL(), "--identity",
			r.path("learner.key"), "--nats-wait", "2m")
		learner = learn("--accept-rollback")
		if restarts {
			r.start(mix)
			r.start(second)
		}
		last += 9
		if steps := r.until(last, firstAt, secondAt); steps <= before {
			t.Errorf("restarts %t: %d steps after the recovery, %d before the backup", restarts, steps, before)
		}
		for _, p := range []*procs.Process{first, second, mix, learner} {
			if !p.Running() {
				t.Errorf("restarts %t: %s has ended:\n%s", restarts, p.Name, p.Log())
			}
		}
	}
	for what, log := range map[string]string{
		"the broker is older than what this stage knows": mix.Log(),
		"that this device knows":                         first.Log(),
		"under a number that this device knows":          second.Log(),
	} {
		if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), what) {
			t.Errorf("%s does not say %q (%v)", log, what, err)
		}
	}
}
