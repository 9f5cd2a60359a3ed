package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/procs"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

const name = stream.Task("replicated")

const declaration = `
version: 1
name: replicated
events: {format: libsvm}
features: {vector: {dimension: 3, min: 0, max: 1, scale: raw}}
intercept: 0
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 1, clip_norm: 0.25}
privacy: {epsilon: 8, delta: 1e-3, trust: shuffle}
schedule: {users: %d, cohort: %d, minimum_cohort: %d, deadline: 5s, rounds: {max: %d}, plan: proved}
`

// limit bounds the time of a deployment, on a machine that is busy with other tests.
const limit = 10 * time.Minute

// A plan is the task of a deployment.
type plan struct {
	rounds, cohort int
	lease          time.Duration
}

func (p plan) users() int { return p.rounds * p.cohort }

const publishers = 2

// rows returns the number of rows of each publisher. A row that a round leaves over, or whose acknowledgement
// is lost, may pay for no second round, and a publisher sends at most a cohort to a round. So with a cohort
// for each round that may be announced every publisher could fill the last round alone, whatever became of
// all reports before it: rounds that are released, and half as many that are void.
func (p plan) rows() int { return p.users() * 3 / 2 }

// A deployment is a task's processes and where they find their broker.
type deployment struct {
	plan
	t          testing.TB
	ctx        context.Context
	dir        string
	conn       *natsjs.Conn // an administrator's
	learner    *procs.Process
	stages     [2]*procs.Process
	publishers [publishers]*procs.Process
}

// addresses are the brokers' URLs as each process knows them.
type addresses struct {
	learner    string
	stages     [2]string
	publishers [publishers]string
}

// deploy starts everything on a broker.
func deploy(t testing.TB, p plan, admin string, at addresses, replicas int) *deployment {
	t.Helper()
	d := &deployment{plan: p, t: t, ctx: procs.Within(t, limit), dir: t.TempDir()}
	d.conn = connect(t, admin)
	d.write("task.yaml", fmt.Appendf(nil, declaration, p.users(), p.cohort, p.cohort*3/4, p.rounds))
	d.learner = programs.Process(t, "learner", programs.Learner, "run", "-f", d.path("task.yaml"), "--nats", at.learner,
		"--replicas",
		fmt.Sprint(replicas), "--state", d.path("state"), "--identity", d.path("learner.key"), "--exit-when-done",
		"--nats-wait", "2m")
	if keygen := programs.Process(t, "keygen", programs.Ingest, "keygen", d.path("stage.key")); keygen.Start() != nil ||
		!d.ended(keygen) {
		t.Fatal("no key for the stages")
	}
	for i := range d.stages {
		d.stages[i] = programs.Process(t, fmt.Sprint("stage", i), programs.Ingest, "shuffle", "--task", string(name),
			"--nats", at.stages[i],
			"--identity", d.path("stage.key"), "--lease", p.lease.String(), "--nats-wait", "2m")
	}
	for i := range d.publishers {
		var rows bytes.Buffer
		for row := range p.rows() {
			fmt.Fprintf(&rows, "%+d %d:1\n", 2*(row%2)-1, 1+row%3)
		}
		data := fmt.Sprintf("users%d.libsvm", i)
		d.write(data, rows.Bytes())
		d.publishers[i] = programs.Process(t, fmt.Sprint("publisher", i), programs.Ingest, "publish", "-f",
			d.path("task.yaml"),
			"--nats", at.publishers[i], "--data", d.path(data), "--state", d.path(fmt.Sprintf("devices%d", i)), "--json",
			"--nats-wait", "2m")
	}
	for _, p := range d.processes() {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// last lets an outage last. Nothing is concluded from the time that it takes.
func last(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}

func connect(t testing.TB, url string) *natsjs.Conn {
	t.Helper()
	c, err := natsjs.Connect(natsjs.ConnectConfig{URL: url, Name: "test", AckTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (d *deployment) processes() []*procs.Process {
	return append(append([]*procs.Process{d.learner}, d.stages[:]...), d.publishers[:]...)
}

func (d *deployment) path(name string) string { return filepath.Join(d.dir, name) }

func (d *deployment) write(name string, data []byte) {
	d.t.Helper()
	if err := os.WriteFile(d.path(name), data, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// ended waits for the end of a process and reports whether it was a success.
func (d *deployment) ended(p *procs.Process) bool {
	d.t.Helper()
	exit, err := p.Wait(d.ctx)
	if err != nil || exit != (procs.Exit{}) {
		d.t.Errorf("%s: %v, %v", p.Name, exit, err)
		return false
	}
	return true
}

// reached waits until the broker has the batch of a round. That a process ended without success ends the test.
func (d *deployment) reached(round int) {
	d.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := d.conn.Get(d.ctx, name.Batch(stream.Round(uint64(round))))
		if err == nil {
			return
		}
		for _, p := range d.processes() {
			if !p.Running() && !d.ended(p) {
				d.t.FailNow()
			}
		}
		select {
		case <-tick.C:
		case <-d.ctx.Done():
			d.t.Fatalf("waited for the batch of round %d: %v", round, context.Cause(d.ctx))
		}
	}
}

// command runs a program to its end and decodes what it prints.
func (d *deployment) command(doc any, as, program string, args ...string) {
	d.t.Helper()
	p := programs.Process(d.t, as, program, args...)
	if err := p.Start(); err != nil {
		d.t.Fatal(err)
	}
	if !d.ended(p) {
		d.t.FailNow()
	}
	d.printed(doc, p)
}

func (d *deployment) printed(doc any, p *procs.Process) {
	d.t.Helper()
	out, err := p.Stdout()
	if err == nil {
		err = json.Unmarshal(out, doc)
	}
	if err != nil {
		d.t.Fatalf("%s printed: %v", p.Name, err)
	}
}

// get reads a record that is there.
func (d *deployment) get(subject string) (m stream.Message) {
	d.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		m, err := d.conn.Get(d.ctx, subject)
		switch {
		case err == nil:
			return m
		case d.ctx.Err() != nil:
			d.t.Fatal(err)
		case !errors.Is(err, stream.ErrNotFound):
			d.t.Logf("%s: %v", subject, err)
		}
		<-tick.C
	}
}
