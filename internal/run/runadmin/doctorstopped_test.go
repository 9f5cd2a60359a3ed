//go:build unix

package runadmin

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// TestDoctorOfAStoppedLearner checks that doctor finds a process that holds a whole folder and was stopped (SIGSTOP),
// with the way out, and does not advise to put a backup in the folder's stead. Once it goes on, all is well.
func TestDoctorOfAStoppedLearner(t *testing.T) {
	body, err := runtest.Job(t, runtest.Small(t)).Wire()
	if err != nil {
		t.Fatal(err)
	}
	name := stream.Task("stopped")
	_, conn := listening(t, name)
	dir := filepath.Join(t.TempDir(), "state")
	store, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runtest.LearnedOn(t, conn, name, body, runtest.Identity(t), runtest.Identity(t), runtest.UpTo{Store: store, Round: 1})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	held := exec.CommandContext(t.Context(), os.Args[0])
	held.Env = append(os.Environ(), holds+"="+dir)
	out, err := held.StdoutPipe()
	if err == nil {
		err = held.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = held.Process.Kill()
		_ = held.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "holds\n" {
		t.Fatalf("%q, %v", line, err)
	}
	says := func(silence time.Duration) (all string, lock natsadmin.Finding) {
		t.Helper()
		list, err := Doctor(t.Context(), Config{StateDir: dir, silence: silence})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			all += fmt.Sprintf("%s %s: %s\n", f.Status, f.Check, f.Text)
			if f.Check == "state lock" {
				lock = f
			}
		}
		return all, lock
	}
	if err := held.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(held.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the learner is not stopped: %v, %v", status, err) // else it may still answer for a moment
	}
	all, lock := says(100 * time.Millisecond)
	if lock.Status != natsadmin.Failure || !strings.Contains(lock.Text, "kill -CONT") ||
		!strings.Contains(lock.Text, "leave the folder as it is") {
		t.Errorf("stopped:\n%s", all)
	}
	if strings.Contains(all, "backup") || strings.Contains(all, "restore") {
		t.Errorf("a whole folder is to be replaced:\n%s", all)
	}
	if err := held.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if all, lock := says(0); lock.Status != natsadmin.OK || !strings.Contains(lock.Text, "answers") {
		t.Errorf("it goes on:\n%s", all)
	}
}
