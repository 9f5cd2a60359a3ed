package accounting

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

func readSamples(t testing.TB) []sample {
	t.Helper()
	data, err := os.ReadFile("testdata/accounting-samples.json")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := ParseSamples(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) < 30 {
		t.Fatalf("%d sample rows, want the whole file", len(rows))
	}
	return rows
}

// TestSamples holds every row to its bracket: no answer below what a concrete
// pair of neighbours really loses, none above 1.10 times the proved bound.
func TestSamples(t *testing.T) {
	kinds := map[string]int{}
	for _, s := range readSamples(t) {
		kinds[s.Kind]++
		v, err := s.Evaluate()
		if err != nil {
			t.Errorf("%s: %v", s.ID, err)
			continue
		}
		if !(s.Lower <= v && v <= s.AcceptMax) {
			t.Errorf("%s: %.9g, want %.9g to %.9g", s.ID, v, s.Lower, s.AcceptMax)
		}
		// The same theorem in a second implementation: agree to its printed digits.
		if s.Kind == "delta" || s.Kind == "eps" || s.Kind == "midbatch" || s.Kind == "topup" {
			if v < s.Upper*(1-1e-6) || v > s.Upper*(1+1e-6) {
				t.Errorf("%s: %.9g, the reference implementation says %.9g", s.ID, v, s.Upper)
			}
		}
		if s.Kind != "plan" {
			continue
		}
		p, err := s.plan()
		if err != nil {
			t.Fatal(err)
		}
		if p.BitsPerCoordinate > s.BitsAcceptMax {
			t.Errorf("%s: %d bits, want at most %d", s.ID, p.BitsPerCoordinate, s.BitsAcceptMax)
		}
		m := Mechanism{Trials: p.HonestFraction.Floor(p.Users) * p.Trials, P: p.P, Levels: p.Levels, Dim: p.Dim, Rounds: 1}
		if d, err := m.Delta(s.Epsilon); err != nil || d > s.Delta {
			t.Errorf("%s: delta %v at the plan's own parameters, want at most %v (%v)", s.ID, d, s.Delta, err)
		}
	}
	for _, k := range []string{"delta", "eps", "calibrate", "midbatch", "topup", "gauss", "plan"} {
		if kinds[k] == 0 {
			t.Errorf("no row of kind %s", k)
		}
	}
}

// checkRow checks one row given as JSON.
func checkRow(row []byte) (id string, value float64, err error) {
	samples, err := ParseSamples(append(append([]byte("["), row...), ']'))
	if err != nil || len(samples) != 1 {
		return "", 0, fmt.Errorf("%d samples: %w", len(samples), err)
	}
	value, err = samples[0].Evaluate()
	return samples[0].ID, value, err
}

func TestCheckRow(t *testing.T) {
	id, v, err := checkRow([]byte(`{"id":"x","kind":"gauss","eps":1,"delta":1e-6}`))
	if err != nil || id != "x" || v < 4.2246 || v > 4.2248 {
		t.Errorf("gauss row: %q %v %v", id, v, err)
	}
	for row, want := range map[string]string{
		`{"id":"x","kind":"other"}`: "kind",
		`{"id":"x","kind":"delta","eps":1,"g":3,"d":1,"p":0.3,"trials":100}`:               "p 0.3",
		`{"id":"x","kind":"delta","eps":-1,"g":3,"d":1,"p":0.5,"trials":100}`:              "epsilon",
		`{"id":"x","kind":"eps","delta":0,"g":3,"d":1,"p":0.5,"trials":100}`:               "delta",
		`{"id":"x","kind":"eps","delta":1e-6,"g":3,"d":1,"p":0.5,"trials":-1}`:             "read samples",
		`{"id":"x","kind":"topup","delta":1e-6,"g":3,"d":1,"p":0.5}`:                       "trials 0",
		`{"id":"x","kind":"midbatch","delta":1e-6,"g":3,"d":1,"p":0.5,"b":2}`:              "honest users",
		`{"id":"x","kind":"plan","n":100,"d":1,"delta":1e-6,"eps":1,"honest_fraction":-1}`: "fraction",
		`{"id":"x","kind":"topup","honest":18446744073709551615,"dummy_users":1,"b":1}`:    "users",
		`[`: "read samples",
	} {
		if _, _, err := checkRow([]byte(row)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("row %s: error %v, want one that names %q", row, err, want)
		}
	}
}

// FuzzCheckRow: rows come from files of users; nothing in them may panic, hang or
// yield NaN.
func FuzzCheckRow(f *testing.F) {
	for _, s := range readSamples(f)[:8] {
		row, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(row)
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		var s sample
		if json.Unmarshal(row, &s) == nil && (s.Kind == "plan" || s.Kind == "calibrate" || s.Trials > 1e6 ||
			s.UserTrials > 1e3 || s.Honest > 1e3 || s.PreloadUsers > 1e3 || s.PostloadUsers > 1e3 || s.HonestAfter > 1e3 ||
			s.HonestUntil > 1e3) {
			return // large tables are slow, not interesting
		}
		if _, v, err := checkRow(row); err == nil && !(v >= 0) {
			t.Errorf("value %v", v)
		}
	})
}
