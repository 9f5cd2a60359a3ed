package stream_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// TestTrouble: of a minute of failures twice a second two are logged, of a lost connection none, and an end only after
// a beginning.
func TestTrouble(t *testing.T) {
	var row stream.Trouble
	now := time.Unix(1, 0)
	minute := func(err error) (told int) {
		for range 120 {
			if row.Tell(now, err) {
				told++
			}
			now = now.Add(time.Second / 2)
		}
		return told
	}
	if told, over := minute(errors.New("no leader")), row.Over(); told != 2 || !over {
		t.Errorf("%d failures of a minute were told, the end %v; want 2 and the end", told, over)
	}
	if told, over := minute(fmt.Errorf("get: %w", stream.ErrDisconnected)), row.Over(); told != 0 || over {
		t.Errorf("%d failures of a lost connection were told, the end %v; want none", told, over)
	}
	if !row.Tell(now, errors.New("another")) {
		t.Error("the first failure of a new row is not told")
	}
}

// TestTroubles: a call that works ends its own series alone, the cause is the newest failure's, and calls fail since
// the first one that is not over.
func TestTroubles(t *testing.T) {
	var all stream.Troubles
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	standing := func(want string, from time.Time) {
		t.Helper()
		if cause, since := all.Standing(); cause != want || !since.Equal(from) {
			t.Errorf("%q fails since %v, want %q since %v", cause, since, want, from)
		}
	}
	standing("", time.Time{})
	first, second := all.Failed(at(1), "put", errors.New("full")), all.Failed(at(2), "get", stream.ErrDisconnected)
	if first != slog.LevelWarn || second != slog.LevelDebug || all.Failed(at(3), "put", errors.New("full")) != slog.LevelDebug {
		t.Errorf("levels %v, %v, want a warning of the first failure alone", first, second)
	}
	standing("full", at(1))
	if all.Worked("get") || !all.Worked("put") || all.Worked("put") {
		t.Error("want the end of what was logged, once")
	}
	standing("", time.Time{})
	all.Failed(at(4), "put", errors.New("slow"))
	all.Failed(at(5), "swap", errors.New("lost"))
	all.Forget(func(call string) bool { return call == "swap" })
	standing("slow", at(4))
}
