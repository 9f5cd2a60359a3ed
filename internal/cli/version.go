package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/stream"
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
			b := ThisBuild()
			return json.Print(c.OutOrStdout(), b, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, b)
				return err
			})
		},
	}
	json.Flag(c.Flags())
	return c
}

// version is the linker's to set, by -X, where a build has no history beside it, such as an image's.
var version string

// A Build describes a program: which version of panlearn it is, and what made it.
type Build struct {
	Version  string `json:"version"`            // of a release, such as v0.1.0, or of the module; "(devel)" is unknown
	Wire     uint32 `json:"wire_version"`       // of the messages
	Revision string `json:"revision,omitempty"` // the commit, where the build knew it
	Go       string `json:"go"`
	System   string `json:"system"` // as linux/amd64
}

// ThisBuild describes this program.
func ThisBuild() Build {
	b := Build{Wire: stream.Version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	is := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok {
		is = cmp.Or(info.Main.Version, is)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	b.Version = cmp.Or(version, is)
	return b
}

// String returns the build in one line.
func (b Build) String() string {
	return fmt.Sprintf("panlearn %s, wire version %d, %s %s", b.Version, b.Wire, b.Go, b.System)
}
