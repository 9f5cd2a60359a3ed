package lint

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	unwatched = regexp.MustCompile(`-gcflags='` + regexp.QuoteMeta(module) + `/([a-z/]+)/\.\.\.=-race=false'`)
	again     = regexp.MustCompile(`test -race -run '([^']+)' .*\./([a-z/]+)/\.\.\.`)
)

// What the race detector does not watch in make test starts no goroutine; its tests that do are those that run again, watched.
func TestUnwatchedPackagesStartNothing(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	folders, second := unwatched.FindAllSubmatch(text, -1), again.FindSubmatch(text)
	if len(folders) != 1 || second == nil || string(second[2]) != string(folders[0][1]) {
		t.Fatalf("the Makefile leaves out %q and watches %q again", folders, second)
	}
	folder, shared := string(folders[0][1]), regexp.MustCompile(strings.ReplaceAll(string(second[1]), "$$", "$"))
	ran := 0
	for _, f := range sources(t) {
		if !within(f.dir(), []string{folder}) {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !starts(fn) {
				continue
			}
			switch {
			case !f.test:
				t.Errorf("%s: %s starts a goroutine, and the race detector does not watch it", f.path, fn.Name.Name)
			case !shared.MatchString(fn.Name.Name):
				t.Errorf("%s: %s starts a goroutine: give it a name that %s matches", f.path, fn.Name.Name, shared)
			default:
				ran++
			}
		}
	}
	if ran != 1 {
		t.Errorf("%d tests start goroutines, want 1, of an accountant that is shared", ran)
	}
}

// starts says whether a function has a go statement or a call of a method Go or Parallel.
func starts(fn *ast.FuncDecl) bool {
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr:
			found = found || n.Sel.Name == "Go" || n.Sel.Name == "Parallel"
		}
		return true
	})
	return found
}
