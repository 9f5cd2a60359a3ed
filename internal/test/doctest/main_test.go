package doctest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/panlearn/panlearn/internal/test/procs"
)

// programs holds the programs that the pages' commands run.
var programs *procs.Programs

// A builder builds them before the tests run.
type builder struct{ *testing.M }

func (b builder) Run() int { return procs.Main(b.M, &programs) }

func TestMain(m *testing.M) { testscript.Main(builder{m}, map[string]func(){"waitport": waitPort}) }

// waitPort implements a command of the pages' shell: it waits until something listens on a port of this
// machine.
func waitPort() {
	const limit, every = time.Minute, 50 * time.Millisecond
	address := net.JoinHostPort("127.0.0.1", os.Args[1])
	for end := time.Now().Add(limit); time.Now().Before(end); <-time.After(every) {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return
		}
	}
	fmt.Fprintf(os.Stderr, "nothing listens on %s after %v\n", address, limit)
	os.Exit(1)
}

// goShim replaces the go command in the pages' shell: the commands of this repository are built already, and the folder
// of a page has no source.
const goShim = `#!/bin/sh
case "$*" in
"build -o bin/ ./cmd/...") mkdir -p bin && exec ln -sf %[1]s/learner %[1]s/ingest bin/ ;;
"run ./cmd/learner "*) shift 2; exec %[1]s/learner "$@" ;;
"run ./cmd/ingest "*) shift 2; exec %[1]s/ingest "$@" ;;
esac
cd %[2]s && exec %[3]s "$@"
`

// folder makes a page's folder, with a bin of the shims beside it.
func folder(dir, gobin string) (path, bin string, err error) {
	top, err := filepath.Abs(root)
	if err != nil {
		return "", "", err
	}
	path, bin = filepath.Join(dir, "panlearn"), filepath.Join(dir, "shims")
	for _, d := range []string{path, bin} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return "", "", err
		}
	}
	for _, name := range []string{"deploy", "docs"} {
		if err := os.Symlink(filepath.Join(top, name), filepath.Join(path, name)); err != nil {
			return "", "", err
		}
	}
	shim := fmt.Sprintf(goShim, filepath.Dir(programs.Learner), top, gobin)
	return path, bin, os.WriteFile(filepath.Join(bin, "go"), []byte(shim), 0o700)
}
