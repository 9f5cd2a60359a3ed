package natsadmin

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
)

// finding returns the doctor's findings of one check, in one text, with the status of the last.
func finding(t *testing.T, list []Finding, check string) (Status, string) {
	t.Helper()
	status, text := Status("nothing"), ""
	for _, f := range list {
		if f.Check == check {
			status, text = f.Status, text+f.Text+"\n"
		}
	}
	return status, text
}

func examineAll(t *testing.T, c *natsjs.Conn, task stream.Task, expect Expect) []Finding {
	t.Helper()
	expect.Now = time.Now()
	list, err := Examine(t.Context(), c, task, expect)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestDoctorOfAFreshBroker(t *testing.T) {
	c := broker(t)
	if _, err := Examine(t.Context(), c, "No Task", Expect{}); err == nil {
		t.Error("a bad name of a task")
	}
	if _, err := Examine(t.Context(), c, task, Expect{Role: "king"}); err == nil {
		t.Error("an unknown role")
	}
	for _, f := range examineAll(t, c, "", Expect{}) {
		if strings.HasPrefix(f.Check, "stream") || f.Check == "permissions" || f.Status == Failure {
			t.Errorf("without a task: %+v", f)
		}
	}
	list := examineAll(t, c, task, Expect{})
	oneFailure := func(list []Finding, want string) {
		t.Helper()
		failures := slices.DeleteFunc(list, func(f Finding) bool { return f.Status != Failure })
		if len(failures) != 1 || failures[0].Check != "streams" || !strings.Contains(failures[0].Text, want) ||
			!strings.Contains(failures[0].Text, "learner provision") {
			t.Errorf("want one failure with %q, got %+v", want, failures)
		}
	}
	oneFailure(list, "none of the streams")
	provision(t, c, task, Options{})
	for _, s := range []stream.Stream{stream.Batches, stream.Reports} { // with its consumer
		if err := c.Admin().JetStream().DeleteStream(t.Context(), task.Name(s)); err != nil {
			t.Fatal(err)
		}
	}
	oneFailure(examineAll(t, c, task, Expect{}), task.Name(stream.Batches)+", "+task.Name(stream.Reports)+":")
	provision(t, c, task, Options{})
	list = examineAll(t, c, task, Expect{})
	for _, f := range list {
		if f.Status == Failure {
			t.Errorf("provisioned: %+v", f)
		}
	}
	if got, text := finding(t, list, "durability"); got != Warning || !strings.Contains(text, "sync_interval") {
		t.Errorf("one copy: %s %s", got, text)
	}
	if got, text := finding(t, examineAll(t, c, task, Expect{Replicas: 3}), "durability"); got != Failure ||
		!strings.Contains(text, "1 replica, want 3") {
		t.Errorf("one copy where three are wanted: %s %s", got, text)
	}
}

// TestDoctorOfLostRecords: provisioning refuses to make them again, so that it is not what helps.
func TestDoctorOfLostRecords(t *testing.T) {
	c := broker(t)
	provision(t, c, task, Options{})
	if _, err := c.PutOnce(t.Context(), task.Task(), []byte("begun")); err != nil {
		t.Fatal(err)
	}
	for _, s := range []stream.Stream{stream.Batches, stream.Leases} {
		if err := c.Admin().JetStream().DeleteStream(t.Context(), task.Name(s)); err != nil {
			t.Fatal(err)
		}
		got, text := finding(t, examineAll(t, c, task, Expect{}), "streams")
		if got != Failure || strings.Contains(text, "learner provision") || !strings.Contains(text, task.Name(stream.Batches)+
			": "+errLost.Error()) {
			t.Errorf("%s is gone of a task that has begun: %s %q", task.Name(s), got, text)
		}
	}
}

// TestDoctorNamesDrift: the settings that somebody changed are named, and the streams that he left alone are not;
// TestProvisionRefusesOtherSettings goes through all settings.
func TestDoctorNamesDrift(t *testing.T) {
	c := broker(t)
	for i, test := range []struct {
		of     stream.Stream
		change func(*jetstream.StreamConfig)
		want   []string
	}{
		{stream.Rounds, func(c *jetstream.StreamConfig) { c.AllowRollup, c.DenyPurge = true, false },
			[]string{"allow_rollup_hdrs is true", "deny_purge is false"}},
		{stream.Reports, func(c *jetstream.StreamConfig) { c.Retention = jetstream.LimitsPolicy }, []string{"retention"}},
	} {
		task := stream.Task("drift-" + string(rune('a'+i)))
		o := Options{}
		if err := o.validate(); err != nil {
			t.Fatal(err)
		}
		for _, s := range all() {
			config := streamConfig(task, s, o)
			if s == test.of {
				test.change(&config)
			}
			if _, err := c.Admin().JetStream().CreateStream(t.Context(), config); err != nil {
				t.Fatal(err)
			}
		}
		list := examineAll(t, c, task, Expect{})
		for _, s := range all() {
			got, text := finding(t, list, "stream "+task.Name(s))
			if s != test.of {
				if got != OK {
					t.Errorf("%s %v was left alone: %s %s", task, s, got, text)
				}
				continue
			}
			for _, want := range test.want {
				if got != Failure || !strings.Contains(text, want) {
					t.Errorf("%s %v: %s %s, want %s", task, s, got, text, want)
				}
			}
		}
	}
}

// TestDoctorSeesTheServer: what depends on the server, without one of each kind.
func TestDoctorSeesTheServer(t *testing.T) {
	c := broker(t)
	for version, want := range map[string]Status{"2.15.2": OK, "2.16.0-RC.1": OK, "3.0.0": OK, "2.14.9": Warning,
		"2.9": Warning, "": Warning, "x": Warning} {
		e := &examination{Conn: c}
		if e.version(version); e.list[0].Status != want {
			t.Errorf("version %q: %+v, want %s", version, e.list[0], want)
		}
	}
	for _, test := range []struct {
		cluster *jetstream.ClusterInfo
		want    string
	}{
		{nil, ""},
		{&jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{{Name: "b", Current: true}}}, ""},
		{&jetstream.ClusterInfo{}, "no leader"},
		{&jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{{Name: "b", Offline: true}}}, "b is offline"},
		{&jetstream.ClusterInfo{Leader: "a", Replicas: []*jetstream.PeerInfo{{Name: "b"}}}, "b is behind"},
	} {
		e := &examination{Conn: c}
		e.copies("S", test.cluster)
		if _, text := finding(t, e.list, "stream S"); !strings.Contains(text, test.want) ||
			(test.want == "") != (text == "") {
			t.Errorf("%+v: %q, want %q", test.cluster, text, test.want)
		}
	}
	for replicas, want := range map[int]Status{1: Warning, 3: OK, 5: OK} {
		e := &examination{Conn: c}
		if e.durability(replicas); e.list[0].Status != want {
			t.Errorf("%d replicas: %+v", replicas, e.list[0])
		}
	}
	for address, want := range map[string]bool{"127.0.0.1:4222": true, "[::1]:4222": true, "10.0.0.1:4222": false,
		"": false} {
		if loopback(address) != want {
			t.Errorf("loopback(%q) is %t", address, !want)
		}
	}
}

// TestDoctorSeesClocks: a clock that is not the server's is a warning that says by how much.
func TestDoctorSeesClocks(t *testing.T) {
	c := broker(t)
	provision(t, c, task, Options{})
	for off, want := range map[time.Duration]struct {
		status Status
		text   string
	}{0: {OK, "ours is within"}, time.Hour: {Warning, "ours is 1h0m0."}, -time.Hour: {Warning, "ours is -59m59."}} {
		clock := func() time.Time { return time.Now().Add(off + 50*time.Millisecond) }
		if got, text := finding(t, examineAll(t, c, task, Expect{Clock: clock}), "clock"); got != want.status ||
			!strings.Contains(text, want.text) {
			t.Errorf("%v off: %s %s, want %s %q", off, got, text, want.status, want.text)
		}
	}
}
