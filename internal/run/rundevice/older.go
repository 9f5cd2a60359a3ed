package rundevice

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/filestore"
)

// ledgerLost refuses a policy with totals in a state folder where other tasks took part and no ledger holds their
// cost.
func (c Config) ledgerLost() error {
	if _, err := os.Stat(filepath.Join(c.StateDir, filestore.LedgerName)); err == nil || !c.Policy.HasTotals() {
		return nil
	}
	tasks, err := filepath.Glob(filestore.Path(c.StateDir, "*"))
	if err != nil {
		return err
	}
	for _, path := range tasks {
		if path != filestore.Path(c.StateDir, c.Task) {
			return consent.Refuse("ledger", "missing",
				"that of this state folder: %s says that its users took part in another task, which counts "+
					"in the policy's totals; take an empty folder for other users", path)
		}
	}
	return nil
}

// ledgerOlder refuses a policy with totals where the ledger does not know of all that took part by the folder's
// participations: it is an empty one, or an older copy.
func (c Config) ledgerOlder() error {
	l, ok := c.Ledger.(*filestore.Ledger)
	if !ok || !c.Policy.HasTotals() {
		return nil
	}
	behind, err := l.Behind(c.Task, c.Store)
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	for _, b := range behind {
		if own := filestore.Path(c.StateDir, c.Task); b.Path == own && b.Standing == 0 {
			continue // the client charges its own task again where the ledger does not know it
		}
		return consent.Refuse("ledger", fmt.Sprintf("%d events of a task in which %d took part", b.Standing, b.Taken),
			"the newest one of this state folder: by %s it is an older copy, or an empty one, and has forgotten what counts in the "+
				"policy's totals; put the newest back, or take an empty folder for other users", b.Path)
	}
	return nil
}
