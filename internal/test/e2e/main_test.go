package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/panlearn/panlearn/internal/test/procs"
)

// programs holds the programs that the scripts run.
var programs *procs.Programs

// A builder builds them before the tests run.
type builder struct{ *testing.M }

func (b builder) Run() int { return procs.Main(path(b), &programs) }

// path puts the programs where scripts find them.
type path struct{ *testing.M }

func (p path) Run() int {
	if err := os.Setenv("PATH", filepath.Dir(programs.Learner)+string(filepath.ListSeparator)+
		os.Getenv("PATH")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return p.M.Run()
}

func TestMain(m *testing.M) { testscript.Main(builder{m}, map[string]func(){"natsd": natsd}) }

// natsd becomes a nats-server: natsd ADDR DIR [CONFIG], without a configuration one that takes anybody.
func natsd() {
	if len(os.Args) != 3 && len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: natsd ADDR DIR [CONFIG]")
		os.Exit(2)
	}
	program, err := exec.LookPath("nats-server")
	host, port, bad := net.SplitHostPort(os.Args[1])
	if err = errors.Join(err, bad); err == nil {
		args := []string{"nats-server", "-a", host, "-p", port, "-js"}
		if len(os.Args) == 4 {
			args = append(args, "-c", os.Args[3])
		} else {
			args = append(args, "-sd", os.Args[2])
		}
		err = syscall.Exec(program, args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// scriptTime bounds all scripts of a folder together, four of which run at a time: half a minute where nothing else
// runs, and several minutes on a machine that is busy.
const scriptTime = 15 * time.Minute

func params(t *testing.T, dir string, limit time.Duration) testscript.Params {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	end, _ := procs.Within(t, limit).Deadline()
	return testscript.Params{
		Dir: filepath.Join("testdata", dir), Deadline: end, Cmds: commands(), ContinueOnError: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("ROOT", root)
			e.Setenv("TASKS", filepath.Join(root, "deploy", "tasks"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			if data, ok := dataDir(); ok {
				e.Setenv("DATA", data)
			}
			return nil
		},
	}
}

func TestScripts(t *testing.T) { testscript.Run(t, params(t, "script", scriptTime)) }
