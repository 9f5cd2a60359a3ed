package panics

import (
	"errors"
	"strings"
	"sync"
	"testing"
)

// reach indexes a slice; its panic names the index and the length, and nothing that is in it.
func reach(s []string, i int) string { return s[i] }

func TestCaught(t *testing.T) {
	failed := errors.New("failed")
	if err := Caught(func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("%v, want the error as it was", err)
	}
	err := Caught(func() error {
		reach([]string{"payload"}, 7)
		return nil
	})
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(e.Text, "index out of range [#] with length #") || len(e.At) == 0 ||
		!strings.Contains(e.At[0], "panics.reach:") || !strings.Contains(err.Error(), "panics.reach:") {
		t.Errorf("%v", err)
	}
	err = Caught(func() error { panic("the payload is 42") })
	if err == nil || strings.Contains(err.Error(), "42") || !strings.Contains(err.Error(), "of type string") {
		t.Errorf("%v: want the type of what panicked alone", err)
	}
}

// TestFirst: the goroutine that waits for workers panics as one of them did, with the place where that happened.
func TestFirst(t *testing.T) {
	var first First
	first.Again() // none: nothing happens
	var workers sync.WaitGroup
	for i := range 8 {
		workers.Go(func() {
			first.Do(func() {
				if i > 3 {
					reach(nil, i)
				}
			})
		})
	}
	workers.Wait()
	err := Caught(func() error {
		first.Again()
		return nil
	})
	if !first.Any() || err == nil || !strings.Contains(err.Error(), "panics.reach:") {
		t.Errorf("%v", err)
	}
}
