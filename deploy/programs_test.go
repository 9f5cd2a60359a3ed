package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/panlearn/panlearn/internal/test/procs"
)

// built are the real commands, built once by the first test that needs them.
var built = sync.OnceValues(func() (*procs.Programs, error) {
	wanted.Store(true)
	return procs.Build()
})

var wanted atomic.Bool

func TestMain(m *testing.M) {
	code := m.Run()
	if wanted.Load() {
		if p, err := built(); err == nil {
			_ = p.Remove()
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func programs(t *testing.T) *procs.Programs {
	t.Helper()
	p, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A line is a command line of ours in one of the files of this folder.
type line struct {
	where string
	args  []string          // program, subcommand, flags
	env   map[string]string // that it is started with
}

// lines returns all command lines of the deployment.
func lines(t *testing.T) (all []line) {
	t.Helper()
	ours := map[string]bool{}
	for name, s := range readCompose(t).Services {
		if ours[name] = s.Image == "panlearn"; ours[name] {
			all = append(all, line{"compose.yaml: " + name, s.Command, s.Environment})
		}
	}
	for _, over := range overlays {
		for name, s := range composed(t, over).Services {
			if ours[name] || s.Image == "panlearn" {
				all = append(all, line{over + ": " + name, s.Command, s.Environment})
			}
		}
	}
	all = append(append(all, productionLines(t)...), scriptLines(t, "setup.sh")...)
	return append(append(all, unitLines(t)...), podLines(t)...)
}

var call = regexp.MustCompile(`(?m)^\s*((?:learner|ingest) [a-z].*)$`)

// scriptLines returns the calls of a shell script, which stand alone on their lines.
func scriptLines(t *testing.T, file string) (all []line) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range call.FindAllStringSubmatch(string(text), -1) {
		filled := regexp.MustCompile(`\$\{?\w+\}?`).ReplaceAllString(strings.ReplaceAll(m[1], `"`, ""), "1")
		all = append(all, line{file, strings.Fields(filled), nil})
	}
	return all
}

// variable is one of the commands' environment.
var variable = regexp.MustCompile(`PANLEARN_[A-Z_]+`)

var flagName = regexp.MustCompile(`--([a-z][a-z-]*)`)

// TestCommandLines: every command line of every file is one that the real commands take, and every variable is a
// flag's.
func TestCommandLines(t *testing.T) {
	p := programs(t)
	path := map[string]string{"learner": p.Learner, "ingest": p.Ingest}
	var commands []string
	for _, l := range lines(t) {
		if len(l.args) < 2 || path[l.args[0]] == "" {
			t.Errorf("%s: %q is no command of ours", l.where, l.args)
			continue
		}
		commands = append(commands, l.args[0]+" "+l.args[1])
		// The flags are parsed up to --help, which then prints and does nothing else.
		out, err := exec.CommandContext(t.Context(), path[l.args[0]], append(slices.Clone(l.args[1:]),
			"--help")...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Usage:\n  "+l.args[0]+" "+l.args[1]) {
			t.Errorf("%s: %s: %v\n%s", l.where, strings.Join(l.args, " "), err, out)
			continue
		}
		var flags []string
		for _, m := range flagName.FindAllStringSubmatch(string(out), -1) {
			flags = append(flags, m[1])
		}
		for name := range l.env {
			flag, isOurs := strings.CutPrefix(name, "PANLEARN_")
			if flag = strings.ToLower(strings.ReplaceAll(flag, "_", "-")); isOurs && !slices.Contains(flags, flag) {
				t.Errorf("%s: %s: %s has no flag --%s", l.where, name, strings.Join(l.args[:2], " "), flag)
			}
		}
		for i, arg := range l.args {
			if task, shipped := strings.CutPrefix(arg, "/etc/panlearn/tasks/"); shipped && l.args[i-1] == "-f" {
				if _, err := os.Stat(filepath.Join("tasks", task)); err != nil {
					t.Errorf("%s: %v", l.where, err)
				}
			}
		}
	}
	for _, want := range []string{"learner devca", "learner keygen", "learner provision", "learner run", "ingest keygen",
		"ingest generate",
		"ingest shuffle", "ingest publish", "ingest relay"} {
		if !slices.Contains(commands, want) {
			t.Errorf("no file runs %s: the search for command lines is broken", want)
		}
	}
	// The check sees a flag that does not exist.
	if exec.CommandContext(t.Context(), p.Learner, "run", "--no-such-flag", "--help").Run() == nil {
		t.Error("--help accepts a flag that does not exist")
	}
}
