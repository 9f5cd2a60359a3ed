package doctest

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/cli"
)

var (
	span       = regexp.MustCompile("`([^`\n]+(?:\n[^`\n]+)*)`")
	invocation = regexp.MustCompile(
		`(?:^|[;&|()]|\bdo|\bthen)\s*(?:[A-Z_]+=\S* )*(?:bin/|go run \./cmd/)?(learner|ingest) ([a-z][^;&|#)]*)`)
	flag    = regexp.MustCompile(`(?:^|\s|\[)(--[a-z][a-z0-9-]*)`)
	command = regexp.MustCompile(`(?m)^  ([a-z]+) {2,}[A-Za-z]`) // a line of a list of commands
	target  = regexp.MustCompile(`^make ([a-z-]+)`)
)

// A manual has what --help prints of every command, by its path.
type manual map[string]string

func readManual(t *testing.T) manual {
	t.Helper()
	out := manual{}
	out.read(t, programs.Learner, "learner")
	out.read(t, programs.Ingest, "ingest")
	return out
}

func (m manual) read(t *testing.T, program, path string) {
	t.Helper()
	help, err := exec.Command(program, append(strings.Fields(path)[1:], "--help")...).Output()
	if err != nil {
		t.Fatalf("%s --help: %v", path, err)
	}
	if parent := path[:max(0, strings.LastIndex(path, " "))]; m[parent] == string(help) {
		return // a line that looks like a command's, and is none
	}
	m[path] = string(help)
	for _, c := range command.FindAllStringSubmatch(m[path], -1) {
		if name := c[1]; name != "completion" && name != "help" {
			m.read(t, program, path+" "+name)
		}
	}
}

// TestEveryFlagHasAVariable: the programs know each other's flags, so that an environment that roles share has no
// strangers.
func TestEveryFlagHasAVariable(t *testing.T) {
	line := regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z][a-z0-9-]*)`)
	have := map[string]bool{}
	for _, text := range readManual(t) {
		for _, m := range line.FindAllStringSubmatch(text, -1) {
			have[m[1]] = true
		}
	}
	delete(have, "help")
	delete(have, "version")
	if known := slices.Sorted(slices.Values(cli.Flags)); !slices.Equal(known, slices.Sorted(maps.Keys(have))) {
		t.Errorf("the programs have the flags %v; internal/cli knows %v", slices.Sorted(maps.Keys(have)), known)
	}
}

// fault returns the fault of one invocation; "" if it has none.
func (m manual) fault(program, rest string) string {
	path := program
	for _, w := range strings.Fields(rest) {
		if _, ok := m[path+" "+w]; !ok {
			break
		}
		path += " " + w
	}
	if path == program {
		return "no command " + program + " " + strings.Fields(rest)[0]
	}
	for _, f := range flag.FindAllStringSubmatch(rest, -1) {
		if name := f[1]; name != "--help" && !regexp.MustCompile(name+`(?:[^a-z0-9-]|$)`).MatchString(m[path]) {
			return path + " has no flag " + name
		}
	}
	return ""
}

// Pages are worked through at the top of the repository. A state in a folder of sources would take these along when its
// reader deletes it.
func TestStatesAreNoSources(t *testing.T) {
	folder, seen := regexp.MustCompile(`--state[ =](?:\./)?([\w./-]+)`), 0
	for _, page := range pages(t) {
		blocks, _ := parsed(t, page)
		for _, b := range blocks {
			for _, s := range folder.FindAllStringSubmatch(b.text, -1) {
				seen++
				if _, err := os.Stat(filepath.Join(root, s[1])); err == nil && !strings.HasPrefix(s[1], "demo/") {
					t.Errorf("%s: --state %s is a folder of the repository", b.at(), s[1])
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d folders found: the pattern is broken", seen)
	}
}

// Commands in the text, and commands of blocks that are not run, exist with all of their flags.
func TestCommandsHaveTheirFlags(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	m, seen := readManual(t), 0
	for _, page := range pages(t) {
		blocks, prose := parsed(t, page)
		var code []string
		for _, b := range blocks {
			if b.lang == "sh" {
				code = append(code, strings.Split(strings.ReplaceAll(b.text, "\\\n", " "), "\n")...)
			}
		}
		for _, s := range span.FindAllStringSubmatch(prose, -1) {
			code = append(code, strings.ReplaceAll(s[1], "\n", " "))
		}
		for _, line := range code {
			for _, c := range invocation.FindAllStringSubmatch(line, -1) {
				seen++
				if f := m.fault(c[1], c[2]); f != "" {
					t.Errorf("%s: %q: %s", page, line, f)
				}
			}
			if c := target.FindStringSubmatch(line); c != nil && !strings.Contains(string(makefile), "\n"+c[1]+": ") {
				t.Errorf("%s: %q: the Makefile has no such target", page, line)
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d invocations found: the pattern is broken", seen)
	}
}

func TestManualFaults(t *testing.T) {
	m := readManual(t)
	for path, help := range m {
		if strings.Contains(help, "(default [])") {
			t.Errorf("%s --help: a flag whose default is nothing says so with brackets: set its DefValue to the empty text",
				path)
		}
	}
	for line, good := range map[string]bool{
		"learner run -f T --embedded --listen 127.0.0.1:4222": true, "learner privacy calibrate --users 5 --json": true,
		"learner runs -f T": false, "learner run --listens x": false, "learner run --list x": false,
		"ingest publish --nats-": false,
	} {
		c := invocation.FindStringSubmatch(line)
		if f := m.fault(c[1], c[2]); (f == "") != good {
			t.Errorf("%q: %q", line, f)
		}
	}
}
