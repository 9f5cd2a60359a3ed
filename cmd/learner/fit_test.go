package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestFitFields pins the names that scripts of users rely on.
func TestFitFields(t *testing.T) {
	accuracy := 0.5
	for _, c := range []struct {
		of   fitted
		want string
	}{
		{fitted{simulated: simulated{TestAccuracy: &accuracy}}, "algorithm baseline delta epsilon rounds rows task test_accuracy train_loss unit"},
		{fitted{simulated: simulated{TestError: &accuracy}, Public: true, People: 3}, "algorithm baseline delta epsilon people public rounds rows task test_error train_loss unit"},
	} {
		doc, err := json.Marshal(c.of)
		var fields map[string]any
		if err == nil {
			err = json.Unmarshal(doc, &fields)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(fields)), " "); err != nil || got != c.want {
			t.Errorf("a fit's report has the fields %q, %v: want %q", got, err, c.want)
		}
	}
}
