package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelpHasNoEmptyDefault checks that no flag's help ends with a default that says nothing.
func TestHelpHasNoEmptyDefault(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for line := range strings.Lines(c.Flags().FlagUsages()) {
			if strings.Contains(line, "(default )") || strings.Contains(line, "(default [])") {
				t.Errorf("%s: %s", c.CommandPath(), line)
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(newRoot())
}
