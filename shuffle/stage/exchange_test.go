package stage

import (
	"context"
	"testing"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/splitwire"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// flooded is an exchange on which a test sends what it likes.
type flooded struct{ receive func([]byte) }

func (f *flooded) Exchange(_ context.Context, _ string, receive func([]byte)) (func([]byte) error, error) {
	f.receive = receive
	return func([]byte) error { return nil }, nil
}

// TestAnswersAreBounded: the longest Share and the longest reply of a task are kept until the loop takes them; of longer
// answers, which no helper gives, and of more than two windows of them, none is.
func TestAnswersAreBounded(t *testing.T) {
	const dim, bundle = 20_000, 3000
	plan := &wire.Plan{Phases: []*wire.Phase{{Mechanism: &wire.Mechanism{Dim: 3}},
		{Mechanism: &wire.Mechanism{Dim: dim, MaxBundle: bundle}}}}
	helper := identity(t)
	key, err := seal.NewRoundKey(wire.Suite_SUITE_MLKEM768_X25519)
	if err != nil {
		t.Fatal(err)
	}
	x := split.Attempt{Round: 1, Number: 1}
	share, err := splitwire.SignShare(helper, split.Share{X: x, Requests: 1, Users: 1, Aggregate: make([]byte, dim*stream.ElementSize)})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := splitwire.Seal(helper, wire.Suite_SUITE_MLKEM768_X25519, key.Public(), &split.Reply{X: x, N: 1,
		Outcomes: make([]split.Outcome, bundle), Messages: make([]split.PrepMessage, bundle)})
	if err != nil {
		t.Fatal(err)
	}
	from := new(flooded)
	d := &dialer{environment: &environment{Config: Config{Task: "churn", Leader: Leader{Exchange: from}}, task: &wire.Task{Plan: plan}}}
	l, err := d.dial(t.Context(), split.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.hangUp()
	for name, answer := range map[string][]byte{"a share": share, "a reply": reply, "nobody listens": nil} {
		if from.receive(answer); len(l.answers) != 1 || len(<-l.answers) != len(answer) {
			t.Errorf("%s of %d bytes is not kept", name, len(answer))
		}
	}
	from.receive(make([]byte, longestAnswer(plan)+1))
	if len(l.answers) != 0 {
		t.Error("an answer that no helper gives is kept")
	}
	for range 10 * linked {
		from.receive(share)
	}
	if len(l.answers) != linked {
		t.Errorf("%d answers wait, want at most %d", len(l.answers), linked)
	}
}
