package mutants

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/panlearn/panlearn/internal/test/longtest"
)

// root is the repository as seen from this package.
const root = "../../.."

// A mutant is one broken promise.
type mutant struct {
	name  string
	file  string // from the root
	edits []edit
	pkg   string // whose tests must see it
	tests string // by name, separated by |
	quick bool   // run by default too
}

// An edit replaces a text that occurs once.
type edit struct{ from, to string }

// text returns the file with the edits made.
func (m mutant) text(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	return m.apply(t, string(data))
}

// apply makes the edits in the text of the file.
func (m mutant) apply(t *testing.T, text string) string {
	t.Helper()
	for _, e := range m.edits {
		if n := strings.Count(text, e.from); n != 1 {
			t.Fatalf("%s holds %d times, want once:\n%s", m.file, n, e.from)
		}
		text = strings.Replace(text, e.from, e.to, 1)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), m.file, text, 0); err != nil {
		t.Fatal(err)
	}
	return text
}

// TestMutantsApply: each mutant changes code that is there, and names tests that are there.
func TestMutantsApply(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			m.text(t)
			there := map[string]bool{}
			files, err := filepath.Glob(filepath.Join(root, m.pkg, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				data, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(data), -1) {
					there[name[1]] = true
				}
			}
			for _, name := range strings.Split(m.tests, "|") {
				if !there[name] {
					t.Errorf("%s has no %s", m.pkg, name)
				}
			}
		})
	}
}

// TestMutantsBuild: each mutant has the right types. One that does not build says nothing of the tests, and only the
// run would tell. All are checked at once: their edits do not overlap.
func TestMutantsBuild(t *testing.T) {
	texts, dirs, read := map[string]string{}, map[string]bool{}, 0
	for _, m := range mutants {
		file, err := filepath.Abs(filepath.Join(root, m.file))
		if err != nil {
			t.Fatal(err)
		}
		if texts[file] == "" {
			texts[file] = m.text(t)
		} else {
			texts[file] = m.apply(t, texts[file])
		}
		dirs["./"+filepath.Dir(m.file)] = true
	}
	var mu sync.Mutex
	all, err := packages.Load(&packages.Config{
		Context: t.Context(), Dir: root, Mode: packages.LoadSyntax,
		ParseFile: func(fset *token.FileSet, file string, text []byte) (*ast.File, error) {
			if changed, ok := texts[file]; ok {
				mu.Lock()
				read++
				mu.Unlock()
				text = []byte(changed)
			}
			return parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
		},
	}, slices.Sorted(maps.Keys(dirs))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		for _, e := range p.Errors {
			t.Error(e)
		}
	}
	if read < len(texts) {
		t.Errorf("%d of %d changed files were read", read, len(texts))
	}
}

// overlay writes texts that replace files, named from the root, into a folder of the test's, and returns the
// path of the overlay file for the go command.
func overlay(t *testing.T, texts map[string]string) (path string) {
	t.Helper()
	dir, replace := t.TempDir(), map[string]string{}
	for file, text := range texts {
		original, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		changed := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[original] = changed
	}
	data, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// failed matches the go command's output where a test failed; the output for a program that does not build
// differs.
var failed = regexp.MustCompile(`(?m)^\s*--- FAIL|^panic:|^fatal error:`)

// TestMutantsAreSeen: with each promise broken, each of the tests that are named for it fails.
func TestMutantsAreSeen(t *testing.T) {
	if testing.Short() {
		fmt.Printf("NOT RUN: %s: every mutant: -short\n", t.Name())
		t.Skip("NOT RUN: every mutant: -short")
	}
	left := 0
	for _, m := range mutants {
		if !longtest.On() && !m.quick {
			left++
			continue
		}
		for _, name := range strings.Split(m.tests, "|") {
			t.Run(m.name+"/"+name, func(t *testing.T) {
				out, err := m.run(t, name)
				switch {
				case err == nil:
					t.Errorf("%s passes although %s", name, m.name)
				case !failed.MatchString(out):
					t.Errorf("%s did not run: %v\n%s", name, err, out)
				default:
					t.Logf("%s is seen by %s", m.name, name)
				}
			})
		}
	}
	if left > 0 {
		longtest.Run(t, fmt.Sprintf("%d of %d mutants", left, len(mutants)))
	}
}

// run runs one test on the mutant.
func (m mutant) run(t *testing.T, test string) (out string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay(t, map[string]string{m.file: m.text(t)}),
		"-vet=off", "-count=1",
		"-timeout=3m", "-run", "^"+test+"$", "./"+m.pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PANLEARN_DEEP=", "RAPID_NOFAILFILE=true") // the short form has to see it
	b, err := cmd.CombinedOutput()
	return string(b), err
}
