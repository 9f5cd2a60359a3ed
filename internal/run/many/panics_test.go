package many

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// TestPanics: a member that panics, itself or in a goroutine, is shown with the sentence and started again after a
// wait; one that does not return is shown too; the others go on.
func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := new(board)
		list.set("beside", "itself", "stuck", "well")
		var mended atomic.Bool
		var none []int
		fault := func() error {
			if mended.Load() {
				return nil
			}
			none[len(none)+2]++
			return nil
		}
		wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		f, r := running(t, list, map[stream.Task]func(context.Context, *Seat) error{
			"itself": func(ctx context.Context, _ *Seat) error { _ = fault(); return wait(ctx) },
			"beside": func(ctx context.Context, s *Seat) error {
				beside := make(chan error)
				go func() { beside <- s.Caught(fault) }()
				if err := <-beside; err != nil {
					return err
				}
				return wait(ctx)
			},
			"stuck": func(ctx context.Context, s *Seat) error { _ = s.Caught(fault); return wait(ctx) },
		})
		time.Sleep(time.Minute)
		for task, want := range map[string]state{"beside": Waiting, "itself": Waiting, "stuck": Running, "well": Running} {
			s, line := f.state(task)
			if fails := strings.Contains(line, "index out of range [#] with length #"); s != want || fails != (task != "well") {
				t.Errorf("%s is %s, want %s: %s", task, s, want, line)
			}
			if is, want := f.failing()[task], task != "well"; is != want {
				t.Errorf("%s: failing %t, want %t", task, is, want)
			}
		}
		if _, line := f.state("stuck"); !strings.Contains(line, "start the process again") {
			t.Errorf("stuck: %s", line)
		}
		if _, err := f.shown("stuck"); err == nil {
			t.Error("the endpoints of a member that panicked are shown")
		}
		mended.Store(true)
		time.Sleep(2 * time.Minute)
		for _, task := range []string{"beside", "itself"} {
			if s, _ := f.state(task); s != Running || f.failing()[task] {
				t.Errorf("%s is %s after it was mended", task, s)
			}
		}
		if starts, live := r.count("well"); starts != 1 || live != 1 {
			t.Errorf("well: %d starts, %d live", starts, live)
		}
	})
}
