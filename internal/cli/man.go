package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/panlearn/panlearn/internal/build"
)

// NewMan returns the hidden command man of both programs, with which a release makes its manual pages.
func NewMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "write a manual page of each command",
		Example: "  man ./man1",
		Hidden:  true,
		Args:    OneArg("DIR", "one folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return Usagef("DIR: %w", err)
			}
			root := c.Root()
			root.DisableAutoGenTag = true // no date: two builds of a commit write the same bytes
			header := &doc.GenManHeader{Section: "1", Source: "panlearn " + build.This().Version, Manual: "panlearn"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			return nil
		},
	}
}
