// Package build says which version of panlearn a program is, and what made it.
package build

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/panlearn/panlearn/stream"
)

// version and revision are the linker's to set, by -X, where a build has no history beside it, such as an image's or a
// release's.
var version, revision string

// An Info describes a program: which version of panlearn it is, and what made it.
type Info struct {
	Version  string `json:"version"`            // of a release, such as v0.1.0, or of the module; "(devel)" is unknown
	Wire     uint32 `json:"wire_version"`       // of the messages
	Revision string `json:"revision,omitempty"` // the commit, where the build knew it
	Go       string `json:"go"`
	System   string `json:"system"` // as linux/amd64
}

// This describes this program.
func This() Info {
	b := Info{Wire: stream.Version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	is := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok {
		is = cmp.Or(info.Main.Version, is)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	b.Version, b.Revision = cmp.Or(version, is), cmp.Or(revision, b.Revision)
	return b
}

// String returns the build in one line.
func (b Info) String() string {
	return fmt.Sprintf("panlearn %s, wire version %d, %s %s", b.Version, b.Wire, b.Go, b.System)
}
