package runadmin

import (
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestDoctorSeesTheStagesClock checks that doctor sees it from any machine, by the time at which its newest attempt
// claims to have begun.
func TestDoctorSeesTheStagesClock(t *testing.T) {
	const task = stream.Task("clocks")
	_, c := listening(t, task)
	said := func() (natsadmin.Status, string) {
		t.Helper()
		v := &visit{Config: Config{Task: task}}
		v.stageClock(t.Context(), c)
		if len(v.list) == 0 {
			return "nothing", ""
		}
		return v.list[0].Status, v.list[0].Text
	}
	put := func(subject string, data []byte) {
		t.Helper()
		if _, err := c.PutOnce(t.Context(), subject, data); err != nil {
			t.Fatal(err)
		}
	}
	for r, test := range []struct {
		off    time.Duration
		status natsadmin.Status
		text   string
	}{{0, natsadmin.OK, "agreed"}, {24 * time.Hour, natsadmin.Warning, "24h0m0s ahead of the broker's"}, {-24 * time.Hour,
		natsadmin.Warning, "24h0m0s behind the broker's"}, {-time.Second, natsadmin.OK, "agreed"}} {
		round := stream.Round(r + 1)
		put(task.Round(round), []byte("announced"))
		if got, _ := said(); got != "nothing" {
			t.Errorf("round %d, which nobody opened: %s", round, got)
		}
		body, err := stream.Marshal(&wire.Open{Version: stream.Version, TaskHash: make([]byte, stream.HashSize),
			Round: uint64(round), Attempt: 1,
			ManifestHash: make([]byte, stream.HashSize), Suite: wire.Suite_SUITE_NONE, Instance: make([]byte,
				stream.InstanceSize),
			StartedUnixMs: time.Now().Add(test.off).UnixMilli()})
		if err != nil {
			t.Fatal(err)
		}
		signed, err := stream.Marshal(&wire.Signed{Version: stream.Version, Kind: wire.Kind_KIND_OPEN, Body: body,
			Key:       make([]byte, stream.KeySize),
			Signature: make([]byte, stream.SignatureLen)})
		if err != nil {
			t.Fatal(err)
		}
		put(task.Open(round, 1), signed)
		if got, text := said(); got != test.status || !strings.Contains(text, test.text) {
			t.Errorf("%v off: %s %s, want %s %q", test.off, got, text, test.status, test.text)
		}
	}
}
