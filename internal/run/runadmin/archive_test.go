package runadmin

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/obs"
	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// TestLostArchive: status and snapshot of a folder are printed whether its archive is whole, lost or damaged, and
// whether a learner holds it or not; ledger, doctor and backup report what is lost, and no copy is left that looks
// whole. The archive of a backup mends it.
func TestLostArchive(t *testing.T) {
	folder, backup := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "backup")
	archive := filepath.Join(folder, "ledger.archive")
	open := func() *pebblestore.Store {
		t.Helper()
		store, err := pebblestore.Open(folder, pebblestore.Options{Tail: 2})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	store := open()
	runtest.Learned(t, runtest.Job(t, runtest.Small(t, "schedule.rounds.max=4")), store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Backup(t.Context(), folder, backup); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(archive)
	if err != nil || len(whole) == 0 {
		t.Fatalf("%d bytes are archived, %v", len(whole), err)
	}
	look := func(want string) {
		t.Helper()
		where := statedir.Where{StateDir: folder}
		for _, q := range []statedir.Question{statedir.AskStatus, statedir.AskSnapshot} {
			if _, err := statedir.Ask(t.Context(), where, q); err != nil {
				t.Errorf("%s: %v", q, err)
			}
		}
		says := func(what string, err error) {
			t.Helper()
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v, want %q", what, err, want)
			}
		}
		read := 0
		says("ledger", statedir.AskTo(t.Context(), where, statedir.AskLedger, func(r io.Reader) error {
			report, err := statedir.ReadLedger(r, func(string, statedir.LedgerEntry) error { read++; return nil })
			if err == nil && !report.Intact {
				err = errors.New("not intact")
			}
			return err
		}))
		if (read > 0) != (want == "") {
			t.Errorf("%d lines of the ledger are printed", read)
		}
		to := filepath.Join(t.TempDir(), "copy")
		_, err := Backup(t.Context(), folder, to)
		says("backup", err)
		if _, err := os.Stat(to); (err == nil) != (want == "") {
			t.Errorf("the copy: %v", err)
		}
		v := &visit{Config: Config{StateDir: folder, Logger: runtest.Discard()}, free: func(string) (uint64,
			error) {
			return 1 << 40, nil
		}}
		v.folder(t.Context())
		for _, f := range v.list {
			if f.Check == "ledger" && ((f.Status == natsadmin.OK) != (want == "") || want != "" &&
				!strings.Contains(f.Text, want)) || v.state == nil {
				t.Errorf("doctor: %+v, want %q, and the state that is whole", f, want)
			}
		}
	}
	for want, damage := range map[string]func() error{
		"":                          func() error { return nil },
		"ledger.archive is missing": func() error { return os.Remove(archive) },
		"the file ends before it":   func() error { return os.Truncate(archive, 3*199+10) },
		"entry 2 of ": func() error {
			b := append([]byte(nil), whole...)
			b[199+60] ^= 4
			return os.WriteFile(archive, b, 0o600)
		},
		"entry 3 stands in its place": func() error {
			return os.WriteFile(archive, append(append(append([]byte(nil), whole[:199]...), whole[2*199:3*199]...),
				whole[2*199:]...), 0o600)
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		look(want)
		store := open()
		listener, remove, err := statedir.ListenControl(folder)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- obs.Serve(ctx, listener, statedir.ControlHandler(store, service.NewFinisher(), service.NewHistory(store)))
		}()
		look(want)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		remove()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		all, err := os.ReadFile(filepath.Join(backup, "ledger.archive"))
		if err == nil {
			err = os.WriteFile(archive, all, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		look("")
	}
}

// TestChangedArchive: old entries that were changed, with hashes that fit, so that the sums are not theirs. Doctor does
// not call the sums whole.
func TestChangedArchive(t *testing.T) {
	var folders []string
	for range 2 {
		folder := filepath.Join(t.TempDir(), "state")
		store, err := pebblestore.Open(folder, pebblestore.Options{Tail: 2})
		if err != nil {
			t.Fatal(err)
		}
		runtest.Learned(t, runtest.Job(t, runtest.Small(t, "schedule.rounds.max=4")), store)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, folder)
	}
	other, err := os.ReadFile(filepath.Join(folders[1], "ledger.archive"))
	if err == nil {
		err = os.WriteFile(filepath.Join(folders[0], "ledger.archive"), other, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	v := &visit{Config: Config{StateDir: folders[0], Logger: runtest.Discard()}, free: func(string) (uint64,
		error) {
		return 1 << 40, nil
	}}
	v.folder(t.Context())
	found := false
	for _, f := range v.list {
		if f.Check == "ledger" {
			found = true
			if f.Status != natsadmin.Failure || strings.Contains(f.Text, "whole") ||
				!strings.Contains(f.Text, "learner restore") {
				t.Errorf("%+v", f)
			}
		}
	}
	if !found {
		t.Errorf("%+v", v.list)
	}
	if _, err := Backup(t.Context(), folders[0], filepath.Join(t.TempDir(), "copy")); err == nil {
		t.Error("a copy is made")
	}
}
