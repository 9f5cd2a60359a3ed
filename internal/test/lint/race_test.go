package lint

import (
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unraced are the packages with goroutines that make test-race leaves out, and why.
var unraced = map[string]string{
	"internal/cli":             "signals and progress of a process",
	"internal/dashboard":       "streams to browsers: its tests want Chromium, and take the race detector's time there",
	"internal/run":             "links broker and disk, which natsjs and pebblestore stand for",
	"internal/test/live":       "test support",
	"internal/test/procs":      "test support",
	"internal/test/runtest":    "test support: fetches the live page",
	"internal/test/storetest":  "test support: state/pebblestore runs it",
	"internal/test/streamtest": "test support: internal/test/memory and stream/natsjs run it",
	"stream/natsjs/natsadmin":  "deletes records at the same time, over a connection that stream/natsjs tests",
}

// TestGoroutinesAreRaced: a package that starts goroutines is one of make test-race, or of those that say why not. One
// that starts none, and whose tests start none, is not: the race detector would find nothing.
func TestGoroutinesAreRaced(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^RACE = ((?:.*\\\n)*.*)$`).FindSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile has no RACE")
	}
	var raced []string
	for _, p := range strings.Fields(strings.ReplaceAll(string(list[1]), "\\\n", " ")) {
		raced = append(raced, strings.TrimPrefix(p, "./"))
	}
	excused := slices.Collect(maps.Keys(unraced))
	started := map[string]bool{}
	for _, f := range sources(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			_, starts := n.(*ast.GoStmt)
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 { // sync.WaitGroup and errgroup
				sel, isSel := call.Fun.(*ast.SelectorExpr)
				starts = isSel && sel.Sel.Name == "Go"
			}
			started[f.dir()] = started[f.dir()] || starts
			if starts && !f.test && !slices.Contains(raced, f.dir()) && !within(f.dir(), excused) {
				t.Errorf("%s: a goroutine in %s, which is not in the Makefile's RACE", f.fset.Position(n.Pos()), f.dir())
			}
			return true
		})
	}
	for _, dir := range raced {
		if !started[dir] {
			t.Errorf("%s is in the Makefile's RACE, and starts no goroutine", dir)
		}
	}
}
