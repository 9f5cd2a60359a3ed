package runadmin

import (
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/test/granttest"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestDoctorMissesTokens: for a task with tokens, known from the broker alone, doctor reports a missing stream of
// counted tokens, and a batch without its list; a task without tokens needs none.
func TestDoctorMissesTokens(t *testing.T) {
	const name stream.Task = "one"
	at, conn := listening(t, name)
	announced, stage := &wire.Task{IssuerKey: make([]byte, stream.IssuerKeySize)}, runtest.Identity(t)
	want := func(of *wire.Task, status natsadmin.Status, text string) {
		t.Helper()
		v := &visit{Config: Config{Task: name}}
		v.tokens(t.Context(), conn, of)
		if status == "" {
			if len(v.list) > 0 {
				t.Errorf("a task without tokens: %v", v.list)
			}
		} else if len(v.list) != 1 || v.list[0].Status != status || !strings.Contains(v.list[0].Text, text) {
			t.Errorf("%v, want %s %q", v.list, status, text)
		}
	}
	put := func(subject string, data []byte) {
		t.Helper()
		if _, err := conn.PutOnce(t.Context(), subject, data); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := stage.Sign(&wire.Batch{Version: stream.Version, TaskHash: make([]byte, stream.HashSize), Round: 1, Attempt: 1,
		ManifestHash: make([]byte, stream.HashSize), OpenHash: make([]byte, stream.HashSize), JoinHash: make([]byte, stream.HashSize), Users: 1, Totals: []uint64{1}, Cutoff: 1})
	if err != nil {
		t.Fatal(err)
	}
	want(&wire.Task{}, "", "")
	want(announced, natsadmin.Failure, name.Name(stream.Spends)+" is missing")
	if err := natsadmin.Provision(t.Context(), conn, name, natsadmin.Options{Grants: true}); err != nil {
		t.Fatal(err)
	}
	want(announced, natsadmin.OK, "is there")
	put(name.Round(1), []byte("x"))
	want(announced, natsadmin.OK, "is there")
	put(name.Batch(1), batch)
	want(announced, natsadmin.Failure, "no list of round 1")
	put(name.Round(2), []byte("x"))
	want(announced, natsadmin.Failure, "no list of round 1")
	put(name.Spent(1, 1), []byte("x"))
	want(announced, natsadmin.OK, "is there")
	// The whole doctor says it, too, of a task file alone.
	small := runtest.Small(t, "grants=pass", "issuer_key="+task.IssuerKeyText(granttest.Signer(t).Public()))
	list, err := Doctor(t.Context(), Config{Task: name, Spec: small, Broker: run.Broker{ConnectConfig: at}, Logger: runtest.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list, func(f natsadmin.Finding) bool { return f.Check == "tokens" && f.Status == natsadmin.OK }) {
		t.Errorf("nothing about tokens: %v", list)
	}
}
