package procs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs are the executables of a deployment, built once for all tests of a package.
type Programs struct {
	Learner string // path of cmd/learner
	Ingest  string // path of cmd/ingest
	Server  string // path of nats-server
	dir     string
}

// Build compiles the commands of this module and the nats-server of its go.mod into a folder of its own. Flags go to
// the compiler: "-race" for the detector. The caller owes Remove.
func Build(flags ...string) (*Programs, error) {
	dir, err := os.MkdirTemp("", "panlearn-procs-")
	if err != nil {
		return nil, fmt.Errorf("build the programs: %w", err)
	}
	p := &Programs{
		Learner: filepath.Join(dir, "learner"), Ingest: filepath.Join(dir, "ingest"), Server: filepath.Join(dir, "nats-server"), dir: dir,
	}
	args := append([]string{"build", "-o", dir + string(filepath.Separator)}, flags...)
	args = append(args, "github.com/panlearn/panlearn/cmd/learner", "github.com/panlearn/panlearn/cmd/ingest",
		"github.com/nats-io/nats-server/v2")
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("build the programs: %w: %s", err, out), p.Remove())
	}
	return p, nil
}

// Remove deletes the executables.
func (p *Programs) Remove() error { return os.RemoveAll(p.dir) }

// environment is what processes see: ours, without settings of the commands, and another home.
func environment(home string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PANLEARN_") && !strings.HasPrefix(v, "HOME=") && !strings.HasPrefix(v, "XDG_CONFIG_HOME=") {
			env = append(env, v)
		}
	}
	return append(env, "HOME="+home)
}
