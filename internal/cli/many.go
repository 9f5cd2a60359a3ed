package cli

import "github.com/spf13/cobra"

// OfOneTask refuses flags that were given beside --tasks although they are of one task.
func OfOneTask(c *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if c.Flags().Changed(name) {
			return Usagef("--%s with --tasks: it is of one task", name)
		}
	}
	return nil
}
