package runadmin

import (
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/natsjs/natsadmin"
)

// TestDoctorMissesTheHelper: an attempt that has no Join after two leases is said; a task of one operator has none.
func TestDoctorMissesTheHelper(t *testing.T) {
	for _, helper := range []bool{false, true} {
		task := stream.Task(map[bool]string{false: "one", true: "two"}[helper])
		_, c := listening(t, task)
		if helper {
			if err := natsadmin.Provision(t.Context(), c, task, natsadmin.Options{Helper: true}); err != nil {
				t.Fatal(err)
			}
		}
		put := func(subject string) {
			t.Helper()
			if _, err := c.PutOnce(t.Context(), subject, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		said := func(after time.Duration) (natsadmin.Status, string) {
			v := &visit{Config: Config{Task: task}}
			v.helper(t.Context(), c, time.Now().Add(after))
			if len(v.list) == 0 {
				return "nothing", ""
			}
			return v.list[0].Status, v.list[0].Text
		}
		want := func(after time.Duration, status natsadmin.Status, text string) {
			t.Helper()
			if !helper {
				status, text = "nothing", ""
			}
			if got, is := said(after); got != status || !strings.Contains(is, text) {
				t.Errorf("%s after %v: %s %s, want %s %q", task, after, got, is, status, text)
			}
		}
		if got, text := said(time.Hour); got != "nothing" {
			t.Errorf("%s without a round: %s %s", task, got, text)
		}
		put(task.Round(1))
		put(task.Open(1, 1))
		want(0, natsadmin.OK, "a moment ago")
		want(time.Hour, natsadmin.Warning, "not joined attempt 1 of round 1")
		put2 := func() {
			if helper {
				put(task.Join(1, 1))
			}
		}
		put2()
		want(time.Hour, natsadmin.OK, "has joined")
	}
}
