package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/panlearn/panlearn/stream/natsjs"
)

// A builder builds the commands before the tests run.
type builder struct{ m *testing.M }

func TestMain(m *testing.M) { testscript.Main(builder{m}, map[string]func(){"natsd": natsd}) }

func (b builder) Run() int {
	dir, err := os.MkdirTemp("", "panlearn-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../../../cmd/...")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the commands:", err)
		return 1
	}
	if err := os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return b.m.Run()
}

// natsd is a broker of its own process: natsd ADDR DIR [CONFIG], without a configuration one that takes anybody.
func natsd() {
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt, syscall.SIGTERM)
	if len(os.Args) != 3 && len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: natsd ADDR DIR [CONFIG]")
		os.Exit(2)
	}
	if len(os.Args) == 4 {
		if err := configured(os.Args[1], os.Args[2], os.Args[3], stopped); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	server, err := natsjs.StartEmbedded(natsjs.EmbeddedConfig{Listen: os.Args[1], StoreDir: os.Args[2]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-stopped
	server.Shutdown()
}

// configured is a broker with a configuration file, but for where it listens and keeps its files.
func configured(address, dir, config string, stopped <-chan os.Signal) error {
	o, err := server.ProcessConfigFile(config)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if o.Port, err = strconv.Atoi(port); err != nil {
		return err
	}
	o.Host, o.StoreDir, o.NoSigs = host, dir, true
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	<-stopped
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// scriptTime bounds one script; a run of a task takes a few seconds of it.
const scriptTime = 3 * time.Minute

func params(t *testing.T, dir string, limit time.Duration) testscript.Params {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return testscript.Params{
		Dir: filepath.Join("testdata", dir), Deadline: time.Now().Add(limit), Cmds: commands(), ContinueOnError: true,
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
