package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/stream"
)

// NewVersion returns the command version of both programs.
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

// version is the linker's to set, by -X, where a build has no history beside it, such as an image's.
var version string

// Version describes this program: its version, that of the wire format, toolchain and platform.
func Version() string {
	is := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		is = info.Main.Version
	}
	return fmt.Sprintf("panlearn %s, wire version %d, %s %s/%s", cmp.Or(version, is), stream.Version, runtime.Version(),
		runtime.GOOS, runtime.GOARCH)
}
