package main

import (
	"testing"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/test/golden"
)

// docs/learner.md is what --help says: go test ./cmd/learner -run TestManual -update writes it.
func TestManual(t *testing.T) {
	manual, err := cli.Manual(newRoot())
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "../../docs/learner.md", manual)
}
