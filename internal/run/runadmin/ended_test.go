package runadmin

import (
	"errors"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestRemoveWantsTheLearnersWord checks that the record at a task's end is believed only if the task's learner signed
// it, for this task.
func TestRemoveWantsTheLearnersWord(t *testing.T) {
	job := runtest.Job(t, runtest.Small(t))
	body, err := job.Wire()
	if err != nil {
		t.Fatal(err)
	}
	name := stream.Task(job.Spec.Name)
	learner, mixer := runtest.Identity(t), runtest.Identity(t)
	for what, test := range map[string]struct {
		begun bool
		end   func(of stream.Hash) []byte
		want  string // of the refusal; empty: removed
	}{
		"no end":         {true, nil, "has not ended: end it"},
		"anything":       {true, func(stream.Hash) []byte { return []byte("over") }, "not its learner's word"},
		"a stranger's":   {true, endBy(t, runtest.Identity(t), nil), "not its learner's word"},
		"the stage's":    {true, endBy(t, mixer, nil), "not its learner's word"},
		"another task's": {true, endBy(t, learner, make([]byte, 32)), "is another task's"},
		"without a task": {false, endBy(t, learner, nil), "no task by which to tell"},
		"the learner's":  {true, endBy(t, learner, nil), ""},
		"nothing at all": {false, nil, "has not ended"},
		"damaged, signed": {true, func(h stream.Hash) []byte { d := endBy(t, learner, nil)(h); d[len(d)-1] ^= 1; return d },
			"not its learner's word"},
	} {
		at, conn := listening(t, name)
		var hash stream.Hash
		if test.begun {
			runtest.LearnedOn(t, conn, name, body, learner, mixer, runtest.UpTo{Store: storetest.NewMemory(), Round: 1})
			m, err := conn.Get(t.Context(), name.Task())
			signed := &wire.Signed{}
			if err == nil {
				err = stream.Unmarshal(m.Data, signed)
			}
			if err != nil {
				t.Fatal(err)
			}
			hash = stream.HashOf(signed.Body)
		}
		if test.end != nil {
			if _, err := conn.PutOnce(t.Context(), name.End(), test.end(hash)); err != nil {
				t.Fatal(err)
			}
		}
		config := Config{Task: name, Broker: run.Broker{ConnectConfig: at}, Logger: runtest.Discard()}
		list, err := Remove(t.Context(), config, false)
		if test.want == "" && (err != nil || len(list) != 5) || test.want != "" && (!errors.Is(err, ErrNotEnded) ||
			!strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, %v; want %q", what, list, err, test.want)
		}
		if test.want == "" {
			continue
		}
		if list, err := Remove(t.Context(), config, true); err != nil || len(list) != 5 {
			t.Errorf("%s, by force: %v, %v", what, list, err)
		}
	}
}

// endBy signs the end of a task, or of another one.
func endBy(t *testing.T, who *seal.Identity, other []byte) func(stream.Hash) []byte {
	return func(of stream.Hash) []byte {
		hash := of[:]
		if other != nil {
			hash = other
		}
		signed, err := who.Sign(&wire.End{Version: stream.Version, TaskHash: hash, LastRound: 1, Reason: "done"})
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
}
