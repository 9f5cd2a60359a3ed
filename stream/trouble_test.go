package stream_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// TestTrouble: of a minute of failures twice a second two are told, of a lost connection none, and the end where there
// was a beginning.
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
