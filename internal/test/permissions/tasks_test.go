package permissions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/deploy"
	"github.com/panlearn/panlearn/internal/devca"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/runadmin"
	"github.com/panlearn/panlearn/internal/run/rundevice"
	"github.com/panlearn/panlearn/internal/run/runlearner"
	"github.com/panlearn/panlearn/internal/run/runstage"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/sim"
	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner/service"
	declared "github.com/panlearn/panlearn/learner/task"
	mixing "github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

var (
	accountNames  = regexp.MustCompile(`(^|[^$\w])(PANLEARN|LEARNER|STAGE|HELPER|DEVICES)\b`)
	variableNames = regexp.MustCompile(`(?m)(\$|^)(ADMIN|LEARNER|STAGE|HELPER|DEVICES)(_INBOX)?\b`)
)

// twoSites returns a server with the shipped accounts twice, the second time under other names and with other
// users, as deploy/nats/README.md says for tasks of different people. A role of the second site has the
// prefix "other-".
func twoSites(t testing.TB) *broker {
	t.Helper()
	dir, second := filepath.Join(t.TempDir(), "site"), filepath.Join(t.TempDir(), "second")
	for _, d := range []string{dir, second} {
		if err := devca.Write(devca.Config{Dir: d, Publishers: 2, Lifetime: time.Hour, Now: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) string {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	config := read(filepath.Join(dir, "panlearn.conf"))
	head, accounts, found := strings.Cut(config, "\naccounts {\n")
	if !found {
		t.Fatal("panlearn.conf has no accounts")
	}
	accounts = strings.TrimSuffix(strings.TrimSpace(accounts), "}")
	others := accountNames.ReplaceAllString(variableNames.ReplaceAllString(accounts, "${1}OTHER_$2$3"), "${1}OTHERS_$2")
	_, users, _ := strings.Cut(variableNames.ReplaceAllString(read(filepath.Join(second, "site.conf")), "${1}OTHER_$2$3"),
		"STORE:")
	_, users, _ = strings.Cut(users, "\n")
	both := head + "\ninclude \"others.conf\"\naccounts {\n" + accounts + others + "}\n"
	for name, text := range map[string]string{"both.conf": both, "others.conf": users} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return start(t, filepath.Join(dir, "both.conf"), func(role string) natsjs.ConnectConfig {
		of := dir
		plain, other := strings.CutPrefix(role, "other-")
		if other {
			of = second
		}
		at := func(name string) string { return filepath.Join(dir, name) }
		return natsjs.ConnectConfig{NKey: filepath.Join(of, plain+".nk"), TLSCA: at("ca.pem"), TLSCert: at(plain + ".pem"),
			TLSKey: at(plain + "-key.pem")}
	})
}

// A tenant is one task with processes, keys and folders of its own.
type tenant struct {
	name           stream.Task
	prefix         string // of its roles
	spec           *declared.Spec
	data, dir      string
	learner, stage *seal.Identity
	applied        func() // called after each round
}

func newTenant(t *testing.T, name, prefix string, sets ...string) *tenant {
	t.Helper()
	file, err := deploy.Tasks.ReadFile("tasks/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := declared.Parse(file, append([]string{"name=" + name, "schedule.users=607", "schedule.rounds.max=3"},
		sets...))
	if err != nil {
		t.Fatal(err)
	}
	n := &tenant{name: stream.Task(name), prefix: prefix, spec: spec, dir: t.TempDir(), applied: func() {}}
	for _, id := range []**seal.Identity{&n.learner, &n.stage} {
		if *id, err = seal.NewIdentity(); err != nil {
			t.Fatal(err)
		}
	}
	population, err := sim.NewSynthetic(sim.SyntheticConfig{Dim: 8, Loss: "logistic", TruthNorm: 3,
		Seed: uint64(len(name))})
	if err != nil {
		t.Fatal(err)
	}
	n.data = filepath.Join(n.dir, "events.jsonl")
	var events bytes.Buffer
	if err = sim.WriteEvents(&events, population.First(600)); err == nil {
		err = os.WriteFile(n.data, events.Bytes(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *tenant) folder() string { return filepath.Join(n.dir, "state") }

// run runs the task's three processes, until all have ended.
func (n *tenant) run(ctx context.Context, b *broker) error {
	log := slog.New(slog.DiscardHandler)
	ended := make(chan error, 3)
	go func() {
		ended <- runlearner.Run(ctx, runlearner.Config{Spec: n.spec, StateDir: n.folder(),
			Broker:       run.Broker{ConnectConfig: b.login(n.prefix + learner)},
			Config:       service.Config{Identity: n.learner, StageKey: n.stage.Public(), Observer: service.Observer{Applied: func(service.Applied) { n.applied() }}, Logger: log},
			ExitWhenDone: true})
	}()
	go func() {
		ended <- runstage.Run(ctx, runstage.Config{Broker: run.Broker{ConnectConfig: b.login(n.prefix + stage)},
			Config: mixing.Config{Task: n.name, Identity: n.stage, LearnerKey: n.learner.Public(), Logger: log}})
	}()
	go func() {
		sent, err := rundevice.Publish(ctx, rundevice.Config{Settings: device.Settings{Task: n.name, Source: n.data, Bundle: 1,
			Logger: log}, Data: n.data,
			StateDir: filepath.Join(n.dir, "devices"), Broker: run.Broker{ConnectConfig: b.login(n.prefix + publisher)}})
		if err == nil && sent.Counted != 600 {
			err = fmt.Errorf("%d users counted", sent.Counted)
		}
		ended <- err
	}()
	return errors.Join(<-ended, <-ended, <-ended)
}

// view returns the content of the task's folder.
func (n *tenant) view(t *testing.T) statedir.View {
	t.Helper()
	store, err := pebblestore.Open(n.folder(), pebblestore.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	view, err := statedir.Look(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// alone runs the task's learner where nobody else is, on the batches that the task had, and returns its folder.
func (n *tenant) alone(t *testing.T, admin *natsjs.Conn, of *wire.Task) state.Checkpoint {
	t.Helper()
	own, err := memory.New(memory.Config{MaxPayload: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	store := storetest.NewMemory()
	defer store.Close()
	answer := service.Observer{Announced: func(r, _ uint64) {
		m, err := admin.Get(t.Context(), n.name.Batch(stream.Round(r)))
		if err == nil {
			_, err = own.PutOnce(t.Context(), m.Subject, m.Data)
		}
		if err != nil {
			t.Error(err)
		}
	}}
	s, err := service.New(service.Config{Task: n.name, Records: own, Store: store, Identity: n.learner,
		StageKey: n.stage.Public(),
		Prepare:  func() (*wire.Task, error) { return of, nil }, Observer: answer})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	at, err := store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestTasksSideBySide: three tasks on one server, two of the same people and one of others. The one that is killed
// in the middle, ended and removed is not noticed by the two that go on, whose users are all counted, and whose
// models are to the last bit those of learners that have the broker for themselves.
func TestTasksSideBySide(t *testing.T) {
	b := twoSites(t)
	first, second := newTenant(t, "first", ""), newTenant(t, "second", "", "privacy.epsilon=2", "schedule.algorithm=psgd",
		"model.radius=5")
	third := newTenant(t, "first-of-others", "other-", "privacy.trust=shuffle+pan")
	all := []*tenant{first, second, third}
	for _, n := range all {
		if _, err := run.Provision(t.Context(), b.conn(t, n.prefix+admin), n.name, run.Streams{Body: body(t, n.spec),
			Replicas: 1}); err != nil {
			t.Fatal(err)
		}
	}
	killed, kill := context.WithCancel(t.Context())
	third.applied = kill
	gone, removed := make(chan struct{}), make(chan struct{})
	// the first round of each that stays is applied, the later ones after the third is gone
	release := func() { <-removed }
	first.applied, second.applied = release, release
	go func() {
		defer close(gone)
		if err := third.run(killed, b); err == nil {
			t.Error("the third task ended by itself")
		}
	}()
	ended := make(chan error, 2)
	for _, n := range []*tenant{first, second} {
		go func() { ended <- n.run(t.Context(), b) }()
	}
	<-gone
	rest := runadmin.AtRest{StateDir: third.folder(), Broker: run.Broker{ConnectConfig: b.login(third.prefix + learner)},
		Logger:   slog.New(slog.DiscardHandler),
		Identity: func() (*seal.Identity, error) { return third.learner, nil }}
	config := runadmin.Config{Task: third.name, Broker: run.Broker{ConnectConfig: b.login(third.prefix + admin)},
		Logger: slog.New(slog.DiscardHandler)}
	if _, err := runadmin.Remove(t.Context(), config, false); !errors.Is(err, runadmin.ErrNotEnded) {
		t.Errorf("removing a task that goes on: %v", err)
	}
	s, err := runadmin.Finish(t.Context(), runadmin.FinishConfig{AtRest: rest, Now: true})
	if err != nil || !s.Ended || s.Round >= s.Rounds {
		t.Errorf("finish: %+v, %v", s, err)
	}
	for want := range 2 {
		list, err := runadmin.Remove(t.Context(), config, false)
		if err != nil || len(list) != 5*(1-want) {
			t.Errorf("removed %q, %v", list, err)
		}
	}
	// Whose people these are cannot touch the others' tasks, not even by name.
	config.Task = first.name
	if list, err := runadmin.Remove(t.Context(), config, true); err != nil || len(list) != 0 {
		t.Errorf("others removed %q of the first task, %v", list, err)
	}
	close(removed)
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for _, n := range []*tenant{first, second} {
		view := n.view(t)
		status, err := view.Status()
		if err != nil || !status.Ended || status.Users != 600 {
			t.Fatalf("%s: %+v, %v", n.name, status, err)
		}
		lone := n.alone(t, b.conn(t, admin), view.Task)
		if got := view.Checkpoint; !bytes.Equal(got.Algorithm, lone.Algorithm) || got.Ledger != lone.Ledger ||
			got.Cursor.BatchHash != lone.Cursor.BatchHash {
			t.Errorf("%s: another model or ledger than alone", n.name)
		}
	}
	if s, err := third.view(t).Status(); err != nil || !s.Ended {
		t.Errorf("the folder of the removed task: %+v, %v", s, err)
	}
}

func body(t *testing.T, spec *declared.Spec) *wire.Task {
	t.Helper()
	job, err := run.NewJob(spec)
	if err != nil {
		t.Fatal(err)
	}
	w, err := job.Wire()
	if err != nil {
		t.Fatal(err)
	}
	return w
}
