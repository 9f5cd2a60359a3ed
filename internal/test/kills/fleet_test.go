package kills

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/procs"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
)

const name = stream.Task("kills")

// The declaration of every task here. Kills waste rounds and users, so both are small, and there are more users than
// the plan needs. Rounds keep the plan's deadline, whatever their pace, so that a learner which is given the batches
// again announces the same bytes.
const declaration = `
version: 1
name: kills
events: {format: libsvm}
features: {vector: {dimension: 3, min: 0, max: 1, scale: raw}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 1, clip_norm: 0.25}
privacy: {epsilon: 8, delta: 1e-3, trust: shuffle}
schedule: {users: %d, cohort: %d, minimum_cohort: %d, deadline: 4s, stale: 4s, rounds: {max: %d}, plan: %s}
`

// The publishers are silos that trust nobody, each with more rows than the plan needs.
const silos = `
version: 1
name: kills
events: {format: libsvm}
features: {vector: {dimension: 3, min: 0, max: 1, scale: raw}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 1, clip_norm: 0.25}
privacy: {epsilon: 8, delta: 1e-3, trust: local}
silo: {count: %d, units: %d}
schedule: {deadline: 4s, rounds: {max: %d}, plan: proved, algorithm: %s, interactive: %t}
`

// A task without an end whose rounds all ask as many, so that a learner which is given the batches again announces
// the same bytes.
const forever = `
version: 1
name: kills
events: {format: libsvm}
features: {vector: {dimension: 3, min: 0, max: 1, scale: raw}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic}
privacy: {epsilon: 8, delta: 1e-3, trust: shuffle}
schedule: {users: 800, continuous: adaptive, minimum_cohort: 100, deadline: 4s, stale: 4s}
`

// A plan describes the task and the publishers of a campaign.
type plan struct {
	rounds, cohort int
	publishers     int
	rows           int // of each publisher
	lease          time.Duration
	units          int  // of each publisher, which is a silo; 0: its rows are people
	all            bool // rows of a silo answer every round
	endless        bool // the task has no end: it is finished after so many rounds
	relayed        bool // the publishers reach the broker through a relay
	meddled        bool // between publishers and relay is a meddler
}

func (p plan) declared() []byte {
	if p.endless {
		return []byte(forever)
	}
	if p.units > 0 {
		algorithm := map[bool]string{false: "psgd", true: "pgd"}[p.all]
		return fmt.Appendf(nil, silos, p.publishers, p.units, p.rounds, algorithm, p.all)
	}
	return fmt.Appendf(nil, declaration, p.rounds*p.cohort, p.cohort, p.cohort*3/4, p.rounds, p.kind())
}

// kind returns schedule.Practical, the default, if a tenth of the users, who report moments, are at least a
// minimum cohort; otherwise schedule.Proved.
func (p plan) kind() string {
	if p.rounds*p.cohort/10 < p.cohort*3/4 {
		return schedule.Proved
	}
	return schedule.Practical
}

// A role is a process of the deployment, and what became of it.
type role struct {
	*procs.Process
	kind    string // learner, stage, publisher, relay, broker
	kills   int
	over    bool      // it ended by itself, as it should
	restart time.Time // when it is down: from then on it is started again
}

// A fleet is a deployment and its folder.
type fleet struct {
	plan
	t      testing.TB
	dir    string
	broker *procs.Server
	roles  []*role // the broker is the last one
	kept   string  // copy of the learner's folder as an early kill left it; empty: none yet

	meddler *meddler // nil: none

	states []state.Checkpoint // of the learner when it was killed
	pace   []stretch          // of a task without an end
	ending bool               // the task was finished
}

func (f *fleet) path(name string) string { return filepath.Join(f.dir, name) }

func (f *fleet) data(publisher int) string { return f.path(fmt.Sprintf("users%d.libsvm", publisher)) }

func (f *fleet) devices(publisher int) string { return f.path(fmt.Sprintf("devices%d", publisher)) }

// newFleet writes the files and starts the broker; the rest is not started yet.
func newFleet(t testing.TB, p plan) *fleet {
	t.Helper()
	f := &fleet{plan: p, t: t, dir: t.TempDir()}
	if err := os.WriteFile(f.path("task.yaml"), p.declared(), 0o600); err != nil {
		t.Fatal(err)
	}
	f.broker = procs.StartServer(t, programs, procs.ServerOptions{})
	f.add("learner", programs.Learner, "run", "-f", f.path("task.yaml"), "--nats", f.broker.URL(), "--state",
		f.path("state"),
		"--identity", f.path("learner.key"), "--exit-when-done", "--nats-wait", "2m")
	for i := range 2 {
		f.add(fmt.Sprint("stage", i), programs.Ingest, "shuffle", "--task", string(name), "--nats", f.broker.URL(),
			"--identity", f.path("stage.key"), "--lease", p.lease.String(), "--nats-wait", "2m")
	}
	reach := []string{"--nats", f.broker.URL(), "--nats-wait", "2m"}
	var relay []string
	if p.relayed {
		ports, err := procs.FreePorts(1)
		if err != nil {
			t.Fatal(err)
		}
		at := fmt.Sprint("127.0.0.1:", ports[0])
		relay = []string{"relay", "--nats", f.broker.URL(), "--http", at, "--http-no-token", "--nats-wait", "2m"}
		way := "http://" + at
		if p.meddled {
			f.meddler = newMeddler(t, way)
			way = f.meddler.server.URL
		}
		reach = []string{"--relay", way}
	}
	for i := range p.publishers {
		var rows bytes.Buffer
		for row := range p.rows {
			fmt.Fprintf(&rows, "%+d %d:1\n", 2*(row%2)-1, 1+row%3)
		}
		if err := os.WriteFile(f.data(i), rows.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		f.add(fmt.Sprint("publisher", i), programs.Ingest, append([]string{"publish", "-f", f.path("task.yaml"),
			"--data", f.data(i), "--state", f.devices(i), "--json"}, reach...)...)
	}
	if relay != nil {
		f.add("relay", programs.Ingest, relay...)
	}
	f.roles = append(f.roles, &role{Process: f.broker.Process, kind: "broker"})
	return f
}

func (f *fleet) add(name, path string, args ...string) {
	kind := name
	for kind[len(kind)-1] >= '0' && kind[len(kind)-1] <= '9' {
		kind = kind[:len(kind)-1]
	}
	f.roles = append(f.roles, &role{Process: programs.Process(f.t, name, path, args...), kind: kind})
}

// tend starts what is down and due, and looks at what ended by itself.
func (f *fleet) tend() {
	for _, r := range f.roles {
		if r.over || r.Running() {
			continue
		}
		if r.Lives() > 0 && r.restart.IsZero() {
			r.ended(f.t)
			continue
		}
		if time.Now().After(r.restart) {
			if err := r.Start(); err != nil {
				f.t.Fatal(err)
			}
			r.restart = time.Time{}
		}
	}
}

// ended looks at the end of a life that nobody asked for.
func (r *role) ended(t testing.TB) {
	exit, err := r.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if exit != (procs.Exit{}) || r.serves() {
		t.Fatalf("%s ended by itself in life %d: %v", r.Name, r.Lives(), exit)
	}
	r.over = true
}

// serves reports whether a process has no end of its own.
func (r *role) serves() bool { return r.kind == "broker" || r.kind == "relay" }

// over reports whether all processes that have an end of their own have ended.
func (f *fleet) over() bool {
	for _, r := range f.roles {
		if !r.over && !r.serves() {
			return false
		}
	}
	return true
}
