package run_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
	"github.com/panlearn/panlearn/stream/wire"
)

// large returns the small task with as many coordinates and users in each round.
func large(t *testing.T, dim uint32, cohort uint64) (*wire.Task, manifest.Sizes) {
	t.Helper()
	body, err := runtest.Job(t, runtest.Small(t)).Wire()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range body.Plan.Phases {
		f.Cohort, f.Mechanism.Dim = cohort, dim
	}
	sizes, err := manifest.SizesOf(body, stage.ReasonNames())
	if err != nil {
		t.Fatal(err)
	}
	return body, sizes
}

// broker connects to a server that ends with the test.
func broker(t *testing.T) *natsjs.Conn {
	t.Helper()
	server, err := embedded.Start(embedded.Config{StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	conn, err := server.Connect(natsjs.ConnectConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// TestACohortOfSingleReportsWaits: while the stage pauses, the broker takes a whole cohort of messages of one user
// each, and twice as many, which come where the share doubled. Their stream is nearly empty then. A limit on one
// attempt by the size of a bundle refused all but 2,338.
func TestACohortOfSingleReportsWaits(t *testing.T) {
	const cohort = 10_000
	ctx := t.Context()
	conn := broker(t)
	body, sizes := large(t, 1000, cohort)
	task := stream.Task("waits")
	if _, err := run.Provision(ctx, conn, task, run.Streams{Body: body, Replicas: 1, MemoryReports: true}); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, sizes.Single)
	for sent := 0; sent < 2*cohort; sent += 500 {
		reports := make([]stream.Outgoing, 500)
		for i := range reports {
			reports[i] = stream.Outgoing{Subject: task.Report(1, 1), Data: data}
			if _, err := rand.Read(reports[i].ID[:]); err != nil {
				t.Fatal(err)
			}
		}
		acks, err := conn.Publish(ctx, reports)
		if err != nil {
			t.Fatal(err)
		}
		for i, ack := range acks {
			if ack.Status != stream.Stored {
				t.Fatalf("report %d of %d: %+v", sent+i, 2*cohort, ack)
			}
		}
	}
}

// TestStreamOfReportsFollowsThePlan checks that the stream holds twice what four cohorts of single reports take,
// within its bounds, unless its size is configured.
func TestStreamOfReportsFollowsThePlan(t *testing.T) {
	conn := broker(t)
	for name, test := range map[stream.Task]struct {
		dim    uint32
		cohort uint64
		memory bool
		bytes  int64 // said
		want   func(bytes, single, each int64) bool
	}{
		"usual": {10, 100, false, 0, func(b, _, each int64) bool { return b == natsadmin.DefaultReportBytes && each < 2000 }},
		"grows": {10_000, 5_000, false, 0, func(b, s, each int64) bool {
			return each == 20_000 && b > 2*each*s &&
				b < 3*each*s
		}},
		"bound": {10_000, 100_000, false, 0, func(b, s, each int64) bool {
			return b == natsadmin.MostReportBytes && each > b/2/s*9/10 && each < b/2/s
		}},
		"memory": {10_000, 5_000, true, 0, func(b, s, each int64) bool {
			return b == natsadmin.DefaultReportBytes && each > b/2/s*9/10 && each < b/2/s
		}},
		"said": {10_000, 5_000, true, 8 << 20, func(b, s, each int64) bool {
			return b == 8<<20 && each > b/2/s*9/10 &&
				each < b/2/s
		}},
	} {
		body, sizes := large(t, test.dim, test.cohort)
		streams := run.Streams{Body: body, Replicas: 1, MemoryReports: test.memory, ReportBytes: test.bytes}
		if _, err := run.Provision(t.Context(), conn, name, streams); err != nil {
			t.Fatal(err)
		}
		s, err := conn.Admin().JetStream().Stream(t.Context(), name.Name(stream.Reports))
		if err != nil {
			t.Fatal(err)
		}
		c := s.CachedInfo().Config
		if !test.want(c.MaxBytes, int64(sizes.Single), c.MaxMsgsPerSubject) {
			t.Errorf("%s: %d bytes, %d of an attempt; a single report has %d bytes", name, c.MaxBytes, c.MaxMsgsPerSubject,
				sizes.Single)
		}
		if err := conn.Admin().JetStream().DeleteStream(t.Context(), name.Name(stream.Reports)); err != nil {
			t.Fatal(err)
		}
	}
	body, _ := large(t, 10, 10)
	_, err := run.Provision(t.Context(), conn, "negative", run.Streams{Body: body, Replicas: 1, ReportBytes: -1})
	if err == nil || !strings.Contains(err.Error(), "max report bytes -1") {
		t.Errorf("%v", err)
	}
}

// TestDoctorSeesFewReportsOfAnAttempt checks that a stream made by an earlier version has the limit of that version,
// and that doctor tells how it is raised.
func TestDoctorSeesFewReportsOfAnAttempt(t *testing.T) {
	conn := broker(t)
	_, sizes := large(t, 1000, 10_000)
	for name, made := range map[stream.Task]natsadmin.Options{
		"old": {MaxMsgSize: sizes.Report, MaxPerSubject: sizes.Waiting},
		"new": run.Options(sizes, 1, false, 0),
	} {
		if err := natsadmin.Provision(t.Context(), conn, name, made); err != nil {
			t.Fatal(err)
		}
		findings, err := natsadmin.Examine(t.Context(), conn, name, natsadmin.Expect{Options: run.Options(sizes, 1, false,
			0)})
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, f := range findings {
			if f.Check == "limits" {
				text = f.Text
			}
		}
		if (name == "old") != strings.Contains(text, "nats stream edit PANLEARN_old_REPORTS --max-msgs-per-subject 40000") {
			t.Errorf("%s: %q", name, text)
		}
	}
}
