package statefolder

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
	if _, err := os.Stat(filepath.Join(c.Dir, filestore.LedgerName)); err == nil || !c.Policy.HasTotals() {
		return nil
	}
	tasks, err := filepath.Glob(filestore.Path(c.Dir, "*"))
	if err != nil {
		return err
	}
	for _, path := range tasks {
		if path != filestore.Path(c.Dir, c.Task) {
			return consent.Refuse("ledger", "missing",
				"that of this state folder: %s says that its users took part in another task, which counts "+
					"in the policy's totals; take an empty folder for other users", path)
		}
	}
	return nil
}

// ledgerOlder refuses a policy with totals where the ledger does not know of all that took part by the folder's
// participations: it is an empty one, or an older copy.
func (c Config) ledgerOlder(f *Folder) error {
	if !c.Policy.HasTotals() {
		return nil
	}
	behind, err := f.Ledger.Behind(c.Task, f.Store)
	if err != nil {
		return err
	}
	for _, b := range behind {
		if own := filestore.Path(c.Dir, c.Task); b.Path == own && b.Standing == 0 {
			continue // the client charges its own task again where the ledger does not know it
		}
		return consent.Refuse("ledger", fmt.Sprintf("%d events of a task in which %d took part", b.Standing, b.Taken),
			"the newest one of this state folder: by %s it is an older copy, or an empty one, and has forgotten what counts in the "+
				"policy's totals; put the newest back, or take an empty folder for other users", b.Path)
	}
	return nil
}
