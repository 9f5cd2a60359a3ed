package natsadmin

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs"
	"github.com/panlearn/panlearn/stream/natsjs/embedded"
)

// smallDisk returns a folder that is a disk of its own, of so many bytes; empty if none may be mounted.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "mode=0700,size="+size, "panlearn-test",
		dir).CombinedOutput(); err != nil {
		t.Logf("NOT RUN: a disk that is full: may not mount one (%v, %s)", err, bytes.TrimSpace(out))
		return ""
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return dir
}

// fill takes all that is left of a disk, until free is called.
func fill(t *testing.T, disk string) (free func()) {
	t.Helper()
	name := filepath.Join(disk, "full")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 1<<12))
	}
	f.Close()
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDoctorSeesAFullDisk, and a server that remembers one: nats-server refuses writes until it is restarted, while
// all reads answer.
func TestDoctorSeesAFullDisk(t *testing.T) {
	disk := smallDisk(t, "4m")
	if disk == "" {
		return
	}
	e, err := embedded.Start(embedded.Config{StoreDir: disk, MaxStore: 1 << 40, SyncAlways: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Shutdown)
	c, err := e.Connect(natsjs.ConnectConfig{AckTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	provision(t, c, task, Options{})
	says := func(check string, want Status, text string) {
		t.Helper()
		if got, said := finding(t, examineAll(t, c, task, Expect{}), check); got != want || !strings.Contains(said, text) {
			t.Errorf("%s: %s %q, want %s %q", check, got, said, want, text)
		}
	}
	says("writes", OK, "5 of the streams")
	says("room", OK, "fits")
	free := fill(t, disk)
	says("room", Failure, "disk full")
	put := func(size int) error {
		_, err := c.Admin().JetStream().Publish(t.Context(), task.Round(1), make([]byte, size), jetstream.WithRetryAttempts(0))
		return err
	}
	if put(1<<16) == nil {
		t.Fatal("the broker stores what its disk has no room for")
	}
	says("writes", Failure, "restart nats-server")
	free()
	says("room", OK, "fits")
	says("writes", Failure, "PANLEARN_churn_ROUNDS refuses every write") // room or not
	if put(1) == nil {
		t.Fatal("the server has forgotten the error: the check is for nothing")
	}
}

// TestDoctorSeesAFullStream, and of what it is full.
func TestDoctorSeesAFullStream(t *testing.T) {
	c := broker(t)
	provision(t, c, task, Options{MaxReportBytes: 100_000, MaxMsgSize: 1000})
	said := func() (Status, string) { return finding(t, examineAll(t, c, task, Expect{}), "reports") }
	if got, text := said(); got != OK || !strings.HasPrefix(text, "0 messages, 0 of 100000 bytes") {
		t.Errorf("empty: %s %s", got, text)
	}
	for i, attempt := range []stream.Attempt{1, 2, 2, 3, 3, 3, 4} {
		for n := range 10 {
			_, err := c.Admin().JetStream().Publish(t.Context(), task.Report(1, attempt), make([]byte, 1000),
				jetstream.WithMsgID(fmt.Sprint(i, n)))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	got, text := said()
	if got != OK || !strings.Contains(text, "30 of panlearn.churn.report.1.3, 20 of panlearn.churn.report.1.2, 10 of") ||
		!strings.Contains(text, "1 subjects more") {
		t.Errorf("with reports: %s %s", got, text)
	}
	err := error(nil)
	for attempt := stream.Attempt(5); err == nil; attempt++ { // one attempt's reports may fill half of it at most
		_, err = c.Admin().JetStream().Publish(t.Context(), task.Report(1, attempt), make([]byte, 1000))
	}
	if !strings.Contains(err.Error(), "maximum bytes") {
		t.Fatal(err)
	}
	if got, text := said(); got != Warning || !strings.Contains(text, "a stream is full") {
		t.Errorf("full: %s %s", got, text)
	}
}

// TestDoctorSeesAFullAttempt: who sends to one attempt alone fills its share, long before the stream is full.
func TestDoctorSeesAFullAttempt(t *testing.T) {
	c := broker(t)
	provision(t, c, task, Options{MaxPerSubject: 5})
	for n, want := range []Status{OK, OK, OK, OK, OK, Warning} {
		got, text := finding(t, examineAll(t, c, task, Expect{}), "reports")
		if got != want || want == Warning &&
			!strings.Contains(text,
				"an attempt may have 5: more of it are refused until a stage takes some: most of it: 5 of panlearn.churn.report.1.1") {
			t.Errorf("%d of 5: %s %s", n, got, text)
		}
		if n == 5 {
			break
		}
		if _, err := c.Admin().JetStream().Publish(t.Context(), task.Report(1, 1), []byte{byte(n)}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDoctorSeesTheLease: who holds it, and that nobody does, which matters while the task goes on.
func TestDoctorSeesTheLease(t *testing.T) {
	c := broker(t)
	provision(t, c, task, Options{})
	says := func(when string, clock time.Duration, want Status, text string) {
		t.Helper()
		e := &examination{Conn: c, task: task, expect: Expect{Clock: func() time.Time { return time.Now().Add(clock) }}}
		e.lease(t.Context(), nil)
		if got, said := finding(t, e.list, "lease"); got != want || !strings.Contains(said, text) {
			t.Errorf("%s: %s %q, want %s %q", when, got, said, want, text)
		}
	}
	put := func(subject string, data []byte) {
		t.Helper()
		if _, err := c.Admin().JetStream().Publish(t.Context(), subject, data); err != nil {
			t.Fatal(err)
		}
	}
	says("before the task", 0, OK, "does not go on")
	put(task.Task(), []byte("task"))
	says("no stage yet", 0, Warning, "no stage has ever held it")
	put(task.Lease(), stream.Lease{Instance: [stream.InstanceSize]byte{0xab, 0xcd}, TTL: 15 * time.Second,
		Newest: 3}.Record())
	says("held", 0, OK, "process abcd0000 renewed it 0s ago, for 15s")
	says("a lease's time later", time.Minute, Failure,
		"nobody holds it: process abcd0000 renewed it last 1m0s ago, for 15s")
	put(task.Lease(), stream.Lease{Newest: 3}.Record())
	says("given up", 0, Failure, "gave it up")
	put(task.Lease(), []byte("x"))
	says("damaged", 0, Failure, "lease")
	put(task.End(), []byte("end"))
	put(task.Lease(), stream.Lease{TTL: time.Second}.Record())
	says("after the end", time.Hour, OK, "nobody holds it")
}

// TestDoctorSeesRedeliveries: reports that a stage was given and did not acknowledge come again.
func TestDoctorSeesRedeliveries(t *testing.T) {
	c := broker(t)
	provision(t, c, task, Options{AckWait: 100 * time.Millisecond})
	if _, err := c.Admin().JetStream().Publish(t.Context(), task.Report(1, 1), []byte("x")); err != nil {
		t.Fatal(err)
	}
	consumer, err := c.Admin().JetStream().Consumer(t.Context(), task.Name(stream.Reports), natsjs.Durable)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m, err := consumer.Next(jetstream.FetchMaxWait(5 * time.Second))
		if err != nil || errors.Is(err, nats.ErrTimeout) {
			t.Fatal(err)
		}
		_ = m // and is not acknowledged
	}
	if got, text := finding(t, examineAll(t, c, task, Expect{}), "redeliveries"); got != Warning ||
		!strings.Contains(text, "1 reports that are out came before") {
		t.Errorf("%s %s", got, text)
	}
}
