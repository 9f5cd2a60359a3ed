package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"strings"
	"testing"
)

// TestMain makes the test's own program the broker that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == brokerCommand {
		main()
		return
	}
	os.Exit(m.Run())
}

// Every part runs and yields figures that are figures. How large they are is nothing that a test on a shared machine can tell.
func TestQuickRun(t *testing.T) {
	var out, log bytes.Buffer
	if err := run(t.Context(), []string{"--quick", "--json"}, nil, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	var report Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, r := range report.Rows {
		count[r.Unit]++
		for name, v := range map[string]float64{"median": r.Value, "yardstick": r.Measured, "ratio": r.Ratio, "least": r.Low, "greatest": r.High} {
			if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || (v == 0 && (name == "median" && !strings.HasPrefix(r.Unit, "%") || name != "median" && r.Yardstick != "")) {
				t.Errorf("%s, %s: %s is %v", r.Group, r.What, name, v)
			}
		}
		if r.Low > r.Ratio || r.Ratio > r.High || r.Repeats == 0 {
			t.Errorf("%s, %s: ratio %v of %v to %v, %d repeats", r.Group, r.What, r.Ratio, r.Low, r.High, r.Repeats)
		}
	}
	// Encode and pack at three dimensions, mix at three by two; eight pipelines, twice each.
	for unit, want := range map[string]int{"ns a coordinate": 12, "MB/s": 16, "ms": 6, "% of its CPU": 2} {
		if count[unit] != want {
			t.Errorf("%d rows in %s, want %d", count[unit], unit, want)
		}
	}
	var text strings.Builder
	if err := report.write(&text); err != nil || strings.Count(text.String(), "\n") < len(report.Rows) {
		t.Errorf("%v, table:\n%s", err, &text)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{{"--only", "weather"}, {"now"}, {"--slow"}, {brokerCommand}} {
		if err := run(t.Context(), args, nil, io.Discard, io.Discard); err == nil {
			t.Errorf("%q: accepted", args)
		}
	}
}
