package typescript

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/internal/test/nodejs"
	"github.com/panlearn/panlearn/internal/test/procs"
	"github.com/panlearn/panlearn/learner/schedule"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

const name = stream.Task("typescript")

// The rounds end at their cohort, or late: what devices do decides, and no clock of this machine.
const declaration = `
version: 1
name: typescript
events: {format: jsonl}
features: {columns: [{column: x0, kind: numeric, min: -1, max: 1}, {column: x1, kind: numeric, min: -1, max: 1}]}
label: {column: y, positive: ["1"], negative: ["-1"]}
model: {loss: logistic%s}
privacy: {epsilon: 8, delta: 1e-3, trust: shuffle}
schedule: {users: %d, cohort: %d, minimum_cohort: %d, rounds: {max: %d}, deadline: %s, plan: %s%s}
`

// A deployment is a task and its processes.
type deployment struct {
	t                    *testing.T
	ctx                  context.Context
	dir, relay           string
	broker               *procs.Server
	learner, stage, http *procs.Process
	fleets               []*procs.Process
	devices              int
	pages                *httptest.Server // of an application
	served               http.ServeMux
	node, compiled       string // the program, and the folder of what it runs
	issuer               string // address of one, for devices; empty: none
	persons              int    // whose tokens it gives
	conn                 *natsjs.Conn
	task                 *wire.Task
	hash                 stream.Hash
}

// deploy starts the roles and returns when the task is announced.
func deploy(t *testing.T, users, cohort, minimum, rounds int, deadline, plan string, more ...string) *deployment {
	t.Helper()
	set := map[bool]string{true: ", radius: 1, clip_norm: 0.25"}[plan == schedule.Proved]
	return deployDeclared(t, fmt.Sprintf(declaration, set, users, cohort, minimum, rounds, deadline, plan, strings.Join(more, "")))
}

// deployDeclared is deploy of a declaration of its own.
func deployDeclared(t *testing.T, declared string) *deployment {
	t.Helper()
	d := &deployment{t: t, dir: t.TempDir(), ctx: procs.Within(t, 3*time.Minute)}
	_, d.node = nodejs.Client(t)
	d.compiled = nodejs.Compile(t)
	file := filepath.Join(d.dir, "task.yaml")
	if err := os.WriteFile(file, []byte(declared), 0o600); err != nil {
		t.Fatal(err)
	}
	ports, err := procs.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	d.pages = httptest.NewServer(&d.served)
	t.Cleanup(d.pages.Close)
	d.broker = procs.StartServer(t, programs, procs.ServerOptions{})
	url, at := d.broker.URL(), fmt.Sprint("127.0.0.1:", ports[0])
	d.relay = "http://" + at
	d.learner = programs.Process(t, "learner", programs.Learner, "run", "-f", file, "--nats", url, "--state",
		filepath.Join(d.dir, "state"), "--identity", filepath.Join(d.dir, "learner.key"), "--exit-when-done")
	d.stage = programs.Process(t, "stage", programs.Ingest, "shuffle", "--task", string(name), "--nats", url,
		"--identity", filepath.Join(d.dir, "stage.key"), "--lease", "5s")
	d.http = programs.Process(t, "relay", programs.Ingest, "relay", "--nats", url, "--http", at, "--http-no-token",
		"--per-address", "2000", "--origin", d.pages.URL)
	d.start(d.learner, d.stage, d.http)
	if d.conn, err = natsjs.Connect(natsjs.ConnectConfig{URL: url}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.conn.Close)
	var signed wire.Signed
	if err := stream.Unmarshal(d.await(name.Task()).Data, &signed); err != nil {
		t.Fatal(err)
	}
	d.task, d.hash = &wire.Task{}, stream.HashOf(signed.Body)
	if err := stream.Unmarshal(signed.Body, d.task); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *deployment) start(all ...*procs.Process) {
	d.t.Helper()
	for _, p := range all {
		if err := p.Start(); err != nil {
			d.t.Fatal(err)
		}
	}
}

// look reads a record, if it is there. A broker whose streams are not made yet has none.
func (d *deployment) look(subject string) (stream.Message, bool) {
	d.t.Helper()
	m, err := d.conn.Get(d.ctx, subject)
	if err != nil && d.ctx.Err() != nil {
		d.t.Fatalf("%s: %v, %v", subject, err, context.Cause(d.ctx))
	}
	return m, err == nil
}

// until waits for something.
func (d *deployment) until(what string, there func() bool) {
	d.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !there() {
		if d.task == nil && !d.learner.Running() {
			d.t.Fatalf("%s: the learner has ended", what)
		}
		select {
		case <-tick.C:
		case <-d.ctx.Done():
			d.t.Fatalf("%s: %v", what, context.Cause(d.ctx))
		}
	}
}

func (d *deployment) await(subject string) (m stream.Message) {
	d.t.Helper()
	d.until(subject, func() (ok bool) {
		m, ok = d.look(subject)
		return ok
	})
	return m
}

// batches returns how many users each round counted, void ones as 0, until the task's end.
func (d *deployment) batches() map[uint64]uint64 {
	d.t.Helper()
	all := map[uint64]uint64{}
	for r := uint64(1); ; r++ {
		m, ok := d.look(name.Batch(stream.Round(r)))
		if !ok {
			return all
		}
		var b wire.Batch
		if _, err := seal.Verify(m.Data, d.task.StageKey, &b); err != nil {
			d.t.Fatal(err)
		}
		if all[r] = b.Users; b.Void {
			all[r] = 0
		}
	}
}

// lose deletes a record at the broker, as one does that syncs too late.
func (d *deployment) lose(subject string) {
	d.t.Helper()
	conn, err := nats.Connect(d.broker.URL())
	if err != nil {
		d.t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		d.t.Fatal(err)
	}
	_, of, err := stream.StreamOf(subject)
	if err != nil {
		d.t.Fatal(err)
	}
	s, err := js.Stream(d.ctx, name.Name(of))
	if err != nil {
		d.t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(d.ctx, subject)
	if err == nil {
		err = s.DeleteMsg(d.ctx, m.Sequence)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// fleet prepares a process of n devices of one event each, all their answers slow and some of them lost. Devices of a
// second fleet are others than those of the first.
func (d *deployment) fleet(n, latencyMs int, cuts float64) *procs.Process {
	return d.fleetOf(n, latencyMs, cuts, func(i int) any {
		if i%50 == 17 {
			return map[string]any{"x0": "not a number", "y": nil} // does not fit, and takes part
		}
		return map[string]any{"x0": float64(i%7)/7 - .5, "x1": float64(i%5) / 5, "y": 2*(i%2) - 1}
	})
}

// fleetOf is fleet of devices that have the events of a function: one, or of a person a list.
func (d *deployment) fleetOf(n, latencyMs int, cuts float64, event func(i int) any) *procs.Process {
	d.t.Helper()
	events := map[int]any{}
	for range n {
		i := d.devices
		d.devices++
		events[i] = event(i)
	}
	all := map[string]any{"relay": d.relay, "task": name, "folder": filepath.Join(d.dir, "devices"),
		"events": events, "latencyMs": latencyMs, "pin": hex.EncodeToString(d.hash[:]), "cuts": cuts}
	if d.issuer != "" {
		all["issuer"], all["persons"] = d.issuer, d.persons
	}
	text, err := json.Marshal(all)
	if err != nil {
		d.t.Fatal(err)
	}
	of := fmt.Sprint("fleet", len(d.fleets))
	file := filepath.Join(d.dir, of+".json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		d.t.Fatal(err)
	}
	p := programs.Process(d.t, of, d.node, filepath.Join(d.compiled, "test", "fleet.js"), file)
	d.fleets = append(d.fleets, p)
	return p
}

// A told holds the output of a device.
type told struct {
	Device        int
	Accepted      bool
	State, Stored string
	Round         uint64
	Failed, Why   string
}

// said returns what the devices of a fleet's newest life printed so far.
func (d *deployment) said(fleet *procs.Process) (accepted map[int]bool, outcomes map[int]told) {
	d.t.Helper()
	out, err := fleet.Stdout()
	if err != nil {
		d.t.Fatal(err)
	}
	accepted, outcomes = map[int]bool{}, map[int]told{}
	whole := out[:bytes.LastIndexByte(out, '\n')+1]
	for line := range bytes.Lines(whole) {
		var one told
		if err := json.Unmarshal(line, &one); err != nil {
			d.t.Fatalf("%s: %v", line, err)
		}
		if one.Accepted {
			accepted[one.Device] = true
		} else {
			outcomes[one.Device] = one
		}
	}
	return accepted, outcomes
}

// Reports that left a device, in the bytes of the relay: version, round, attempt, message id, sealed message.
func (d *deployment) sent(device int) (bodies []string) {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, "devices", fmt.Sprint(device), "sent"))
	if err != nil && !os.IsNotExist(err) {
		d.t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// split returns the round of a report, in hexadecimal, and its attempt and message id.
func split(body string) (round, id string) {
	const version, number = 2, 16
	return body[version : version+number], body[version+number : version+2*number+32]
}

// audit waits for the end of the devices, and compares their outcomes with what the batches counted. It returns how
// many were charged and not counted.
func (d *deployment) audit() (lost int) {
	d.t.Helper()
	outcomes, n := map[int]told{}, d.devices
	for _, fleet := range d.fleets {
		exit, err := fleet.Wait(d.ctx)
		if err != nil || exit.Code != 0 {
			d.t.Fatalf("the devices: %v, %v", exit, err)
		}
		_, own := d.said(fleet)
		maps.Copy(outcomes, own)
	}
	counted, unknown, batches := map[uint64]uint64{}, map[uint64]uint64{}, d.batches()
	states, charged := map[string]int{}, 0
	for i := range n {
		o, ok := outcomes[i]
		states[o.State]++
		bodies := d.sent(i)
		switch {
		case ok && d.persons > 0 && o.State == "refused" && o.Failed == "": // its person's token went to another device
		case !ok || o.Failed != "" || o.Why != "":
			d.t.Errorf("device %d was told %+v", i, o)
		case o.State == "counted":
			counted[o.Round]++
		case o.State == "unknown": // the batch may hold it: the answer was lost
			unknown[o.Round]++
		case o.State != "uncounted":
			d.t.Errorf("device %d was told %+v", i, o)
		}
		// One draw: one round alone, one message id of an attempt, and one message of an id, whatever was killed.
		ids, round := map[string]string{}, ""
		charged += min(1, len(bodies))
		for _, b := range bodies {
			r, id := split(b)
			if was := ids[id]; was != "" && was != b || round != "" && round != r {
				d.t.Errorf("device %d sent another report: %d bodies", i, len(bodies))
			}
			ids[id], round = b, r
		}
	}
	users := uint64(0)
	for r, of := range batches {
		users += of
		if counted[r] > of || counted[r]+unknown[r] < of {
			d.t.Errorf("round %d: %d counted and %d unknown, the batch has %d", r, counted[r], unknown[r], of)
		}
	}
	lost = charged - int(users)
	d.t.Logf("%d devices: %v; %d users in %d batches; %d charged and not counted", n, states, users, len(batches), lost)
	if lost < 0 {
		d.t.Error("somebody was counted twice")
	}
	return lost
}
