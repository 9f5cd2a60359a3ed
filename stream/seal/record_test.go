package seal_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestVerifyRecord: of the right writer, on its own subject, for its own task, and nothing else.
func TestVerifyRecord(t *testing.T) {
	id, task := identity(t), stream.Hash{7}
	end := &wire.End{Version: stream.Version, TaskHash: task[:], LastRound: 3, Reason: "done"}
	signed, err := id.Sign(end)
	if err != nil {
		t.Fatal(err)
	}
	name := stream.Task("churn")
	m := stream.Message{Subject: name.End(), Data: signed}
	var got wire.End
	body, err := seal.VerifyRecord(m, id.Public(), task, &got)
	if want, _ := stream.Marshal(end); err != nil || got.LastRound != 3 || string(body) != string(want) {
		t.Fatalf("%v, %v", &got, err)
	}
	if _, err := seal.VerifyRecord(m, identity(t).Public(), task, &got); !errors.Is(err, seal.ErrWrongKey) {
		t.Errorf("another writer: %v", err)
	}
	if _, err := seal.VerifyRecord(m, id.Public(), stream.Hash{8}, &got); err == nil ||
		!strings.Contains(err.Error(), "another task") {
		t.Errorf("another task: %v", err)
	}
	for _, subject := range []string{name.Task(), name.Round(3), "panlearn.churn.other", ""} {
		if _, err := seal.VerifyRecord(stream.Message{Subject: subject, Data: signed}, id.Public(), task, &got); err == nil {
			t.Errorf("an End on %q", subject)
		}
	}
	identityRecord, err := id.Sign(&wire.HelperIdentity{Version: stream.Version, Task: "churn", Key: id.Public()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seal.VerifyRecord(stream.Message{Subject: name.Helper(), Data: identityRecord}, id.Public(), task,
		&wire.HelperIdentity{}); err == nil {
		t.Error("a record that names no task's hash")
	}
}
