package curator

import (
	"fmt"

	"github.com/panlearn/panlearn/learner/convex"
)

// admitted returns the people with at most mostRows rows each. Rows that are no examples of the loss are left blank:
// their gradients are zero.
func admitted(p Public, loss convex.Loss, people []Person) ([]Person, error) {
	features := max(p.Dim/max(loss.Parameters(1), 1), 1)
	if loss.Parameters(features) != p.Dim {
		return nil, fmt.Errorf("loss %s: no number of features makes %d parameters", loss.Name(), p.Dim)
	}
	out := make([]Person, len(people))
	for i, rows := range people {
		out[i] = make(Person, min(len(rows), mostRows))
		for k := range out[i] {
			if row := rows[k]; row.Validate(features) == nil && loss.CheckLabel(row.Label) == nil {
				out[i][k] = row
			}
		}
	}
	return out, nil
}
