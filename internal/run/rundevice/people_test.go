//go:build unix

package rundevice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/runlearner"
	"github.com/panlearn/panlearn/internal/run/runstage"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	mixing "github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

const crowd = `
version: 1
name: crowd
events: {format: jsonl}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100}
    - {column: kind, kind: categorical, vocabulary: [a, b]}
label: {column: "y", positive: ["1"], negative: ["0"]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 4, delta: 1e-4, unit: user}
user: {column: who, items: 3, radius: 0.5, wait: 1s}
schedule: {users: 122, rounds: {max: 2}}
`

// began runs learner, broker and stage of a declaration until the task has ended, which ended waits for.
func began(t *testing.T, declaration string, sets ...string) (job run.Job, config runlearner.Config, broker run.Broker,
	ended func()) {
	spec, err := task.Parse([]byte(declaration), sets)
	if err != nil {
		t.Fatal(err)
	}
	job = runtest.Job(t, spec)
	heard, url := runtest.BrokerURL()
	config = runlearner.Config{Config: service.Config{Identity: runtest.Identity(t), Logger: heard}, Spec: spec,
		StateDir: t.TempDir(),
		Embedded: true, Listen: "127.0.0.1:0", ExitWhenDone: true}
	learning, mixer := make(chan error, 1), make(chan error, 1)
	go func() { learning <- runlearner.Run(t.Context(), config) }()
	select {
	case broker.URL = <-url:
	case err := <-learning:
		t.Fatal(err)
	}
	go func() {
		mixer <- runstage.Run(t.Context(), runstage.Config{Config: mixing.Config{Task: stream.Task(spec.Name),
			Identity: runtest.Identity(t), Logger: runtest.Discard()}, Broker: broker})
	}()
	return job, config, broker, func() {
		if err := <-mixer; err != nil {
			t.Errorf("stage: %v", err)
		}
		if err := <-learning; err != nil {
			t.Errorf("learner: %v", err)
		}
	}
}

// rowsOf writes rows of people from one number to another in any order, up to seven of each, into a few files, or one.
func rowsOf(t *testing.T, from, to int, seed uint64, files ...*os.File) {
	var lines []string
	random := rand.New(rand.NewPCG(seed, 1))
	for i := from; i < to; i++ {
		for range 1 + random.IntN(7) {
			lines = append(lines, fmt.Sprintf(`{"who": "p%d", "age": %d, "kind": "a", "y": %d}`, i, random.IntN(100),
				random.IntN(2)))
		}
	}
	lines = append(lines, `{"age": 1, "kind": "nobody's", "y": 1}`, "not a row")
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	for i, line := range lines {
		if _, err := fmt.Fprintln(files[i%len(files)], line); err != nil {
			t.Error(err)
		}
	}
}

// TestPeopleEndToEnd publishes the rows of people from several files in any order, dies in the middle of a round,
// publishes the files again in another order, stops, and takes the rest from a stream that has everybody's rows once
// more: every person is counted, once and on an account of the own.
func TestPeopleEndToEnd(t *testing.T) {
	const users = 120
	job, config, broker, ended := began(t, crowd)
	name := stream.Task(job.Spec.Name)
	dir, devices := t.TempDir(), t.TempDir()
	var log lockedBuffer
	// publish runs until the data or the task end, or enough says that the device dies.
	publish := func(data, source string, enough func(device.Progress) bool) (device.Summary, error) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		c := Config{Settings: device.Settings{Task: name, Logger: slog.New(slog.NewTextHandler(&log, nil)), Source: source},
			Data: data, StateDir: devices, Broker: broker}
		c.Progress = func(p device.Progress) {
			if enough(p) {
				stop()
			}
		}
		return Publish(ctx, c)
	}
	write := func(from, to int, seed uint64) {
		var files []*os.File
		for _, part := range []string{"monday", "sunday", "tuesday"} {
			f, err := os.Create(filepath.Join(dir, part+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			files = append(files, f)
		}
		rowsOf(t, from, to, seed, files...)
	}
	write(0, 90, 1)
	sum, err := publish(filepath.Join(dir, "*.jsonl"), "files", func(p device.Progress) bool { return p.InFlight > 0 })
	if !errors.Is(err, context.Canceled) || sum.Surplus == 0 || sum.Keyless != 2 {
		t.Errorf("the first run: %+v, %v; want it stopped", sum, err)
	}
	write(0, 90, 2)
	sum, err = publish(filepath.Join(dir, "*.jsonl"), "files", func(p device.Progress) bool {
		return p.Round == 2 &&
			p.InFlight > 0
	})
	if !errors.Is(err, context.Canceled) || sum.Counted == 0 {
		t.Errorf("the second run: %+v, %v; want it stopped", sum, err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		rowsOf(t, 0, users, 3, f)
	}()
	begun := time.Now()
	sum, err = publish(pipe, "", func(p device.Progress) bool { return false })
	if err != nil || sum.Events != users || sum.Counted != users || sum.Keyless != 2 || time.Since(begun) < time.Second {
		t.Errorf("the stream: %+v, %v, after %v; want all %d counted after their wait", sum, err, time.Since(begun), users)
	}
	ended()
	doc, err := statedir.Ask(t.Context(), statedir.Where{StateDir: config.StateDir}, statedir.AskStatus)
	var status statedir.Status
	if err != nil || json.Unmarshal(doc, &status) != nil || !status.Ended || status.Users != users {
		t.Errorf("status: %s, %v; want %d users", doc, err, users)
	}
	if strings.Contains(log.String(), "p1") {
		t.Errorf("the log speaks of people:\n%s", &log)
	}
	accounts, err := filestore.OpenLedger(devices)
	if err != nil {
		t.Fatal(err)
	}
	keys := []participation.Key{ledger.Everyone}
	for i := range users {
		keys = append(keys, participation.EventKey(fmt.Sprint("p", i)))
	}
	if err := accounts.Update(time.Now(), keys, func(_ time.Time, charges [][]ledger.Charge) error {
		for i, c := range charges[1:] {
			if len(c) != 1 || !c[0].ByUser || c[0].Rounds != 1 || c[0].Epsilon > float64(job.Plan.Epsilon)*1.001 {
				t.Errorf("account of person %d: %+v, want one round at epsilon %v", i, c, job.Plan.Epsilon)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestPatientsEndToEnd runs three hospitals, each with a folder of its own, that report about their patients, in one
// pass and in many; the first of them dies and comes back with its files in another order, and with a new patient.
func TestPatientsEndToEnd(t *testing.T) {
	const patients = 60
	for _, passes := range []string{"one", "many"} {
		job, config, broker, ended := began(t, strings.Replace(crowd, "wait: 1s", "wait: 0s", 1), "privacy.trust=local",
			fmt.Sprintf("silo={count: 3, units: %d}", patients),
			"schedule={interactive: "+fmt.Sprint(passes == "many")+", rounds: {max: 4}}")
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, err = PublishHTTP(t.Context(), Config{Settings: device.Settings{Task: stream.Task(job.Spec.Name),
			Logger: runtest.Discard()}, StateDir: t.TempDir(), Broker: broker},
			HTTPConfig{Listener: listener, NoToken: true})
		var refused *consent.RefusedError
		if !errors.As(err, &refused) || refused.Field != "silo" {
			t.Errorf("%s: a gateway ended with %v, want it refused", passes, err)
		}
		var group sync.WaitGroup
		for i := range 3 {
			publish := func(ctx context.Context, people int, seed uint64, state string,
				see func(device.Progress)) (device.Summary, error) {
				f, err := os.Create(filepath.Join(t.TempDir(), fmt.Sprint(seed)))
				if err != nil {
					t.Error(err)
				}
				defer f.Close()
				rowsOf(t, 0, people, seed, f)
				c := Config{Settings: device.Settings{Task: stream.Task(job.Spec.Name), Logger: runtest.Discard(), Source: f.Name(),
					Progress: see}, Data: f.Name(), StateDir: state, Broker: broker}
				return Publish(ctx, c)
			}
			group.Go(func() {
				state, people := t.TempDir(), patients
				if i == 0 {
					ctx, stop := context.WithCancel(t.Context())
					sum, err := publish(ctx, people, 1, state, func(p device.Progress) {
						if p.InFlight > 0 {
							stop()
						}
					})
					if stop(); !errors.Is(err, context.Canceled) {
						t.Errorf("%s: the first life ended with %+v, %v", passes, sum, err)
					}
					people++
				}
				sum, err := publish(t.Context(), people, uint64(2+i), state, nil)
				k := job.Plan.Phases[0].Mechanism.Units
				blocks, doubt := uint64(patients)/k, uint64(0)
				if i == 0 { // its first life may have ended before the broker answered it, and the round without it
					doubt = min(sum.Unknown, 1)
				}
				if err != nil || sum.Events != blocks || sum.Units != blocks*k || sum.Counted+doubt != blocks ||
					(sum.LeftOver > 0) != (i == 0 || patients%k > 0) {
					t.Errorf("%s: hospital %d of blocks of %d: %+v, %v", passes, i, k, sum, err)
				}
			})
		}
		group.Wait()
		ended()
		doc, err := statedir.Ask(t.Context(), statedir.Where{StateDir: config.StateDir}, statedir.AskStatus)
		var status statedir.Status
		if err != nil || json.Unmarshal(doc, &status) != nil || !status.Ended || float64(status.EpsilonSpent) > 4 ||
			status.EpsilonSpent == 0 {
			t.Errorf("%s: status: %s, %v", passes, doc, err)
		}
	}
}
