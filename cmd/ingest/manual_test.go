package main

import (
	"testing"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/test/golden"
)

// docs/ingest.md is what --help says: go test ./cmd/ingest -run TestManual -update writes it.
func TestManual(t *testing.T) {
	manual, err := cli.Manual(newRoot())
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "../../docs/ingest.md", manual)
}
