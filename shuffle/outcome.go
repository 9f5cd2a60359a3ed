package shuffle

// An Outcome names the result of adding a report or bundle. The strings are a small fixed set, fit for metric labels.
type Outcome uint8

const (
	// Accepted: every user of the bundle is in the totals.
	Accepted Outcome = iota
	// Duplicate: an id was counted before, or occurs twice in the bundle.
	Duplicate
	// BadBundle: no ids, or more than Config.MaxBundle.
	BadBundle
	// BadLength: not one packed report for every id.
	BadLength
	// BadRange: a count, or counts together, that no device of this round can have drawn.
	BadRange
	// Full: the cohort is complete.
	full
	// Closed: the mixer was closed or erased.
	Closed

	outcomes
)

var outcomeNames = [outcomes]string{"accepted", "duplicate", "bad_bundle", "bad_length", "bad_range", "full", "closed"}

// String returns the outcome's label.
func (o Outcome) String() string {
	if o >= outcomes {
		return "unknown"
	}
	return outcomeNames[o]
}
