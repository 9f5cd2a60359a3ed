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

// Build compiles the commands of this module and the nats-server of its go.mod into a folder of its own. The caller
// owes Remove.
func Build() (*Programs, error) {
	dir, err := os.MkdirTemp("", "panlearn-procs-")
	if err != nil {
		return nil, fmt.Errorf("build the programs: %w", err)
	}
	p := &Programs{
		Learner: filepath.Join(dir, "learner"), Ingest: filepath.Join(dir, "ingest"), Server: filepath.Join(dir,
			"nats-server"), dir: dir,
	}
	commands := []string{"github.com/panlearn/panlearn/cmd/learner", "github.com/panlearn/panlearn/cmd/ingest"}
	if err := errors.Join(sources(commands...),
		p.link(append(commands, "github.com/nats-io/nats-server/v2")...)); err != nil {
		return nil, errors.Join(fmt.Errorf("build the programs: %w", err), p.Remove())
	}
	return p, nil
}

// link puts executables into the folder. `go run` keeps what it links in the build cache, where `go build` links
// each time.
func (p *Programs) link(packages ...string) error {
	for _, one := range packages {
		cmd := exec.Command("go", "run", "-exec", `sh -c 'cp "$0" "$DIR"'`, one)
		cmd.Env = append(os.Environ(), "DIR="+p.dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", one, err, out)
		}
	}
	return nil
}

// sources looks into the folders of this module that the commands are made of. The go command remembers what a test
// looked at: once a file there changes, earlier results do not replace a new run.
func sources(packages ...string) error {
	list := exec.Command("go",
		append([]string{"list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}"}, packages...)...)
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the sources: %w", err)
	}
	for dir := range strings.FieldsSeq(string(out)) {
		if _, err := os.ReadDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// Remove deletes the executables.
func (p *Programs) Remove() error { return os.RemoveAll(p.dir) }

// environment returns the environment of processes: ours, without settings of the commands, and with another
// home.
func environment(home string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PANLEARN_") && !strings.HasPrefix(v, "HOME=") && !strings.HasPrefix(v, "XDG_CONFIG_HOME=") {
			env = append(env, v)
		}
	}
	return append(env, "HOME="+home)
}
