package manifest

import (
	"errors"
	"fmt"

	"github.com/panlearn/panlearn/stream/grant"
	"github.com/panlearn/panlearn/stream/wire"
)

// HasGrants reports whether each user of a task's reports has a token.
func HasGrants(task *wire.Task) bool { return len(task.GetIssuerKey()) > 0 }

// validateGrants refuses a key that is none, and tokens of organisations.
func validateGrants(task *wire.Task) error {
	if !HasGrants(task) {
		return nil
	}
	if _, err := grant.ParseKey(task.IssuerKey); err != nil {
		return fmt.Errorf("issuer_key: %w", err)
	}
	if task.Plan.Silos > 0 {
		return errors.New("issuer_key: want none where organisations report")
	}
	return nil
}

// CheckSpent refuses a Batch that does not say which tokens were counted where the task has tokens, and one that does
// where it has none.
func CheckSpent(task *wire.Task, b *wire.Batch) error {
	if HasGrants(task) != (len(b.SpentHash) > 0) {
		return fmt.Errorf("spent_hash of %d bytes: want one where reports have tokens, and none elsewhere", len(b.SpentHash))
	}
	return nil
}
