package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTunedTaskFindsItsFiles checks that a task which tune writes into another folder names the public model and the
// start of the first one.
func TestTunedTaskFindsItsFiles(t *testing.T) {
	folder, elsewhere := t.TempDir(), t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	bent(t, in("sample.csv"), 1, 600)
	jsonOf(t, newInit(), nil, "--data", in("sample.csv"), "-o", in("drafted.yaml"))
	for _, output := range []string{filepath.Join(elsewhere, "tuned.yaml"), in("tuned.yaml")} {
		jsonOf(t, newTune(), nil, "-f", in("drafted.yaml"), "--data", in("sample.csv"), "--seeds", "2", "-o", output,
			"--json")
		if _, err := os.Stat(output); err != nil {
			t.Fatal(err)
		}
		jsonOf(t, newPlan(), nil, "-f", output, "--json")
	}
}
