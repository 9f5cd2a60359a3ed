package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/stream"
)

// NewVersion is the command version of both programs.
func NewVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "print the versions of program, wire format and toolchain",
		Example: "  version",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), Version())
			return err
		},
	}
}

// Version says which program this is: its version, that of the wire format, toolchain and platform.
func Version() string {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	return fmt.Sprintf("panlearn %s, wire version %d, %s %s/%s", version, stream.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
