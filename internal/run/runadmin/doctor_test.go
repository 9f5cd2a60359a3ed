package runadmin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// listening starts an embedded broker with the streams of a task.
func listening(t *testing.T, name stream.Task) (natsjs.ConnectConfig, *natsjs.Conn) {
	t.Helper()
	server, err := embedded.Start(embedded.Config{StoreDir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	at := natsjs.ConnectConfig{URL: server.URL()}
	conn, err := natsjs.Connect(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if err := natsadmin.Provision(t.Context(), conn, name, natsadmin.Options{}); err != nil {
		t.Fatal(err)
	}
	return at, conn
}

func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(to, 0o700); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestDoctorOfState: what can be wrong with a state folder, alone and held against brokers and task files, has its
// finding.
func TestDoctorOfState(t *testing.T) {
	job := runtest.Job(t, runtest.Small(t, "schedule.rounds.max=4"))
	body, err := job.Wire()
	if err != nil {
		t.Fatal(err)
	}
	name := stream.Task(job.Spec.Name)
	learner, mixer := runtest.Identity(t), runtest.Identity(t)
	broker, conn := listening(t, name)
	folder := filepath.Join(t.TempDir(), "state")
	upToRound := func(round uint64) {
		t.Helper()
		store, err := pebblestore.Open(folder, pebblestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		runtest.LearnedOn(t, conn, name, body, learner, mixer, runtest.UpTo{Store: store, Round: round})
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	old, oldConn := listening(t, name)
	empty, _ := listening(t, name)
	other, otherConn := listening(t, name)
	upToRound(1)
	first := copied(t, folder)
	copyTo := func(to *natsjs.Conn, subjects ...string) {
		t.Helper()
		for _, subject := range subjects {
			m, err := conn.Get(t.Context(), subject)
			if err == nil {
				_, err = to.PutOnce(t.Context(), subject, m.Data)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	copyTo(oldConn, name.Task(), name.Round(1), name.Batch(1), name.Round(2))
	upToRound(3)
	gap, gapConn := listening(t, name)
	copyTo(gapConn, name.Task(), name.Round(1), name.Batch(1), name.Round(2), name.Round(3), name.Batch(3), name.Round(4))
	stranger, err := runtest.Job(t, runtest.Small(t, "schedule.rounds.max=4", "privacy.epsilon=0.5")).Wire()
	if err != nil {
		t.Fatal(err)
	}
	runtest.LearnedOn(t, otherConn, name, stranger, learner, mixer, runtest.UpTo{Store: storetest.NewMemory()})
	newer := copied(t, folder)
	if err := os.WriteFile(filepath.Join(newer, "FORMAT"),
		[]byte("panlearn state folder, format 9, written by panlearn v9.9.9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := copied(t, folder)
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	damaged := copied(t, folder)
	tables, err := filepath.Glob(filepath.Join(damaged, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal("no tables to damage", err)
	}
	for _, path := range tables {
		if err := os.WriteFile(path, make([]byte, 5000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := func(dir string, at natsjs.ConnectConfig) Config {
		return Config{StateDir: dir, Broker: run.Broker{ConnectConfig: at}, Logger: runtest.Discard()}
	}
	withFile := func(c Config, sets ...string) Config {
		c.Spec = runtest.Small(t, append([]string{"schedule.rounds.max=4"}, sets...)...)
		c.Task = stream.Task(c.Spec.Name)
		return c
	}
	named := config(folder, natsjs.ConnectConfig{})
	named.Task = "another"
	none := natsjs.ConnectConfig{}
	for what, test := range map[string]struct {
		config Config
		check  string
		status natsadmin.Status
		text   string
	}{
		"missing": {config(filepath.Join(folder, "no"), none), "state folder", natsadmin.Warning,
			"learner run makes it"},
		"a file": {config(filepath.Join(folder, "FORMAT"), none), "state folder", natsadmin.Failure,
			"name the folder"},
		"open to others":  {config(open, none), "state folder", natsadmin.Warning, "chmod 700"},
		"its user's":      {config(folder, none), "state folder", natsadmin.OK, "alone"},
		"format":          {config(folder, none), "state format", natsadmin.OK, "format 1"},
		"a newer format":  {config(newer, none), "state format", natsadmin.Failure, "build v9.9.9"},
		"nothing in it":   {config(t.TempDir(), none), "ledger", natsadmin.Warning, "nothing is committed"},
		"damaged":         {config(damaged, none), "ledger", natsadmin.Failure, "learner restore"},
		"whole":           {config(folder, none), "ledger", natsadmin.OK, "checkpoint of round 3"},
		"free":            {config(folder, none), "state lock", natsadmin.OK, "no learner runs"},
		"disk":            {config(folder, none), "disk", natsadmin.OK, "a commit may take"},
		"of another name": {named, "task", natsadmin.Failure, `holds task "quickstart", not "another"`},
		"the same task":   {config(folder, broker), "task", natsadmin.OK, "the same task"},
		"of one time":     {config(folder, broker), "cursor", natsadmin.Warning, "start it"},
		"an older folder": {config(first, broker), "cursor", natsadmin.Failure, "--accept-rollback"},
		"an older broker": {config(folder, old), "cursor", natsadmin.Failure, "restore its streams"},
		"a broker that lost a batch": {config(folder, gap), "cursor", natsadmin.Failure,
			"committed: panlearn.quickstart.batch.2: restore"},
		"a broker that lost all": {config(folder, empty), "task", natsadmin.Failure, "the broker has none of this name"},
		"another task on the broker": {config(folder, other), "task", natsadmin.Failure,
			"privacy.epsilon: file says 1, task has 0.5"},
		"an empty folder for a task": {withFile(config(t.TempDir(), broker)), "task", natsadmin.Failure, "learner restore"},
		"a task that has not begun":  {withFile(config("", empty)), "task", natsadmin.OK, "has not begun"},
		"the same file":              {withFile(config(folder, broker)), "drift", natsadmin.OK, "the task file declares"},
		"another file, by the folder": {withFile(config(folder, none), "privacy.delta=1e-7"), "drift", natsadmin.Failure,
			"privacy.delta: file says 1e-7, task has 0.000001"},
		"another file, by the broker": {withFile(config("", broker), "privacy.delta=1e-7"), "drift", natsadmin.Failure,
			"privacy.delta: file says"},
		"a broker that is not there": {config(folder, natsjs.ConnectConfig{URL: "nats://127.0.0.1:1"}), "connection",
			natsadmin.Failure, "127.0.0.1:1"},
	} {
		list, err := Doctor(t.Context(), test.config)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		found := false
		for _, f := range list {
			found = found || f.Check == test.check && f.Status == test.status && strings.Contains(f.Text, test.text)
		}
		if !found {
			t.Errorf("%s: no %s of %q with %q in %+v", what, test.status, test.check, test.text, list)
		}
	}

	// A learner that runs is asked, and its folder stays its own.
	store, err := pebblestore.Open(folder, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	listener, remove, err := statedir.ListenControl(folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- obs.Serve(ctx, listener, statedir.ControlHandler(store, service.NewFinisher(), service.NewHistory(store)))
	}()
	list, err := Doctor(t.Context(), config(folder, broker))
	stop()
	if served := <-done; err != nil || served != nil {
		t.Fatal(err, served)
	}
	remove()
	said := map[string]string{}
	for _, f := range list {
		if f.Status == natsadmin.Failure {
			t.Errorf("a folder that is held: %+v", f)
		}
		said[f.Check] += f.Text
	}
	if !strings.Contains(said["state lock"], "a learner holds") ||
		said["cursor"] != "round 3 is committed, round 4 is announced" {
		t.Errorf("a folder that is held: %q", said)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}
