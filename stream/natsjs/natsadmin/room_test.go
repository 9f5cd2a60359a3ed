package natsadmin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
)

// small returns a connection to a server that sets aside less than a task's reports need.
func small(t *testing.T) *natsjs.Conn {
	t.Helper()
	e, err := embedded.Start(embedded.Config{StoreDir: t.TempDir(), MaxStore: DefaultReportBytes - 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Shutdown)
	c, err := e.Connect(natsjs.ConnectConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func names(t *testing.T, c *natsjs.Conn) (list []string) {
	t.Helper()
	all := c.Admin().JetStream().StreamNames(t.Context())
	for name := range all.Name() {
		list = append(list, name)
	}
	if err := all.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// TestProvisionRollsBack: a task that does not fit leaves nothing behind, and takes nothing of others away.
func TestProvisionRollsBack(t *testing.T) {
	c := small(t)
	provision(t, c, "fits", Options{MaxReportBytes: 1 << 20})
	before := names(t, c)
	err := Provision(t.Context(), c, task, Options{})
	if err == nil || !strings.Contains(err.Error(), "removed again") {
		t.Fatalf("%v: want a refusal that says what was removed", err)
	}
	if after := names(t, c); !slices.Equal(before, after) {
		t.Errorf("streams %v, before %v", after, before)
	}
	// Streams from before this call stay, even if they are empty and the call does not succeed.
	other := streamConfig(task, stream.Rounds, Options{Replicas: 1})
	other.Metadata = map[string]string{madeBy: "another"}
	if _, err := c.Admin().JetStream().CreateStream(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := Provision(t.Context(), c, task, Options{}); err == nil {
		t.Fatal("it fits")
	}
	if after := names(t, c); len(after) != len(before)+1 || !slices.Contains(after, other.Name) {
		t.Errorf("streams %v, want those before and %s", after, other.Name)
	}
	// A stream that has a message stays, even if this call made it.
	mark := newMark()
	mine := streamConfig(task, stream.Attempts, Options{Replicas: 1})
	mine.Metadata = map[string]string{madeBy: mark}
	if _, err := c.Admin().JetStream().CreateStream(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutOnce(t.Context(), task.Open(1, 1), []byte("x")); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	because := errors.New("because")
	if err := rollback(over, c, task, mark, because); !errors.Is(err, because) ||
		!slices.Contains(names(t, c), mine.Name) {
		t.Errorf("%v; streams %v", err, names(t, c))
	}
}

// TestDoctorKnowsWhatFits: by the server's own word, since no client may ask what it has left; and nothing of the
// trial stays.
func TestDoctorKnowsWhatFits(t *testing.T) {
	for _, test := range []struct {
		c    *natsjs.Conn
		o    Options
		want Status
		text string
	}{
		{broker(t), Options{}, OK, "fits: a stream of 268435456 bytes in file"},
		{small(t), Options{}, Warning, "does not set aside 268435456 bytes in file"},
		{small(t), Options{MaxReportBytes: 1 << 20}, OK, "1048576"},
		{small(t), Options{MaxReportBytes: 1 << 40, MemoryReports: true}, Warning, "in memory"},
	} {
		for _, named := range []stream.Task{"", task} {
			got, text := finding(t, examineAll(t, test.c, named, Expect{Options: test.o}), "room")
			if got != test.want || !strings.Contains(text, test.text) {
				t.Errorf("%+v: %s %s, want %s %s", test.o, got, text, test.want, test.text)
			}
		}
		if left := names(t, test.c); len(left) > 0 {
			t.Errorf("doctor leaves %v", left)
		}
	}
}

// TestReservation: the limits of an account, with tiers and without.
func TestReservation(t *testing.T) {
	none := jetstream.AccountLimits{MaxMemory: -1, MaxStore: -1, MaxStreams: -1}
	with := func(change func(*jetstream.Tier)) *jetstream.AccountInfo {
		info := &jetstream.AccountInfo{Tier: jetstream.Tier{Limits: none}}
		change(&info.Tier)
		return info
	}
	for _, test := range []struct {
		name     string
		info     *jetstream.AccountInfo
		replicas int
		memory   bool
		want     string
	}{
		{"no limits", with(func(*jetstream.Tier) {}), 1, false, ""},
		{"four streams left", with(func(t *jetstream.Tier) { t.Streams, t.Limits.MaxStreams = 6, 10 }), 1, false,
			"6 of at most 10 streams"},
		{"five streams left", with(func(t *jetstream.Tier) { t.Streams, t.Limits.MaxStreams = 5, 10 }), 1, false, ""},
		{"one byte short", with(func(t *jetstream.Tier) { t.ReservedStore, t.Limits.MaxStore = 2, DefaultReportBytes+1 }), 1,
			false, "268435455 bytes of files"},
		{"just enough", with(func(t *jetstream.Tier) { t.ReservedStore, t.Limits.MaxStore = 1, DefaultReportBytes+1 }), 1,
			false, ""},
		{"for one copy, not for three", with(func(t *jetstream.Tier) { t.Limits.MaxStore = DefaultReportBytes }), 3, false,
			"a task reserves 805306368"},
		{"memory", with(func(t *jetstream.Tier) { t.Limits.MaxMemory = 1 << 20 }), 1, true, "bytes of memory"},
		{"memory is not asked for", with(func(t *jetstream.Tier) { t.Limits.MaxMemory = 1 << 20 }), 1, false, ""},
		{"one stream's limit", with(func(t *jetstream.Tier) { t.Limits.StoreMaxStreamBytes = 1 << 20 }), 1, false,
			"a stream may reserve 1048576"},
		{"limits required", with(func(t *jetstream.Tier) { t.Limits.MaxBytesRequired = true }), 1, false,
			"max_bytes_required"},
		{"messages out", with(func(t *jetstream.Tier) { t.Limits.MaxAckPending = 1000 }), 1, false, "1000 messages out"},
		{"a tier of three", &jetstream.AccountInfo{Tiers: map[string]jetstream.Tier{
			"R1": {Limits: jetstream.AccountLimits{MaxStreams: 0}},
			"R3": {Limits: jetstream.AccountLimits{MaxMemory: -1, MaxStreams: -1, MaxStore: DefaultReportBytes}}}}, 3, false,
			""},
	} {
		o := Options{Replicas: test.replicas, MemoryReports: test.memory}
		if err := o.validate(); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(reserve(o).lacks(test.info, o.Replicas), "; ")
		if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
