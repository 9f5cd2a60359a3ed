package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/build"
)

// NewVersion returns the command version of both programs.
func NewVersion() *cobra.Command {
	var json JSON
	c := &cobra.Command{
		Use:     "version",
		Short:   "print the versions of program, wire format and toolchain",
		Example: "  version --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b := build.This()
			return json.Print(c.OutOrStdout(), b, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, b)
				return err
			})
		},
	}
	json.Flag(c.Flags())
	return c
}
