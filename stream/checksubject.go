package stream

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream/wire"
)

// CheckSubject says whether what a body says of its round and attempt is what its subject says.
func CheckSubject(subject string, m proto.Message) error {
	a, err := ParseSubject(subject)
	if err != nil {
		return err
	}
	var round Round
	var attempt Attempt
	if m, ok := m.(interface{ GetRound() uint64 }); ok && a.Round != 0 {
		round = Round(m.GetRound())
	}
	if m, ok := m.(interface{ GetAttempt() uint64 }); ok && (a.Verb == "open" || a.Verb == "close") {
		attempt = Attempt(m.GetAttempt())
	}
	kinds := map[wire.Kind]string{
		wire.Kind_KIND_STAGE: "stage", wire.Kind_KIND_TASK: "task", wire.Kind_KIND_ROUND: "round", wire.Kind_KIND_OPEN: "open",
		wire.Kind_KIND_CLAIM: "claim", wire.Kind_KIND_BATCH: "batch", wire.Kind_KIND_CLOSE: "close", wire.Kind_KIND_END: "end",
	}
	if kind := KindOf(m); kinds[kind] != a.Verb || round != a.Round || attempt != a.Attempt {
		return fmt.Errorf("subject %q holds %v of round %d, attempt %d", subject, kind, round, attempt)
	}
	return nil
}
