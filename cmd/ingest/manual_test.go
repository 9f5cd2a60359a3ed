package main

import (
	"flag"
	"os"
	"testing"

	"github.com/panlearn/panlearn/internal/cli"
)

const manualFile = "../../docs/ingest.md"

var update = flag.Bool("update", false, "write "+manualFile+" again")

// docs/ingest.md is what --help says: go test ./cmd/ingest -run TestManual -update writes it.
func TestManual(t *testing.T) {
	want, err := cli.Manual(newRoot())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(manualFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(manualFile); err != nil || string(got) != want {
		t.Errorf("%s is not what --help says (%v): write it again with -update", manualFile, err)
	}
}
