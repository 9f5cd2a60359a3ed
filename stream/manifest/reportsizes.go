package manifest

import (
	"slices"

	"github.com/panlearn/panlearn/stream/wire"
)

// ReportSizes returns the lengths in bytes that a message of reports of a task may have, in ascending order: in every
// phase, of one user and of as many as a bundle may hold.
func ReportSizes(task *wire.Task) ([]int, error) {
	var sizes []int
	for _, f := range task.GetPlan().GetPhases() {
		params, err := Params(f.GetMechanism())
		if err != nil {
			return nil, err
		}
		part := PartOf(task, params)
		for n := 1; n <= int(f.Mechanism.MaxBundle); n++ {
			sizes = append(sizes, part.ReportSize(task.Suite, n))
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes), nil
}
