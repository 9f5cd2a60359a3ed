package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// Every row of the reference samples: not below what a pair of neighbours proves, not above what is accepted.
func TestPrivacyCheck(t *testing.T) {
	const file = "../../../randomizer/accounting/testdata/accounting-samples.json"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var samples struct {
		Rows []struct {
			ID        string   `json:"id"`
			Lower     float64  `json:"lower"`
			AcceptMax *float64 `json:"accept_max"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(data, &samples); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("learner", "privacy", "check", file, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var values []struct {
		ID    string   `json:"id"`
		Value *float64 `json:"value"`
	}
	if err := json.Unmarshal(out, &values); err != nil {
		t.Fatal(err)
	}
	if len(values) != len(samples.Rows) || len(values) == 0 {
		t.Fatalf("%d values of %d rows", len(values), len(samples.Rows))
	}
	for i, row := range samples.Rows {
		v := values[i]
		if v.ID != row.ID || v.Value == nil || row.AcceptMax == nil || !(row.Lower <= *v.Value &&
			*v.Value <= *row.AcceptMax) {
			t.Errorf("row %s: value %v of %s is not within %v and %v", row.ID, v.Value, v.ID, row.Lower, row.AcceptMax)
		}
	}
	t.Logf("%d rows", len(values))
}
