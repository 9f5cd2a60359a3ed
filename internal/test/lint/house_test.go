package lint

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// Entropy of production code comes from the operating system. A seed becomes entropy only for simulations, test
// support, the faults that the memory broker is asked to make, plans that are compared on simulated rows, queries that
// hide nobody (learner/research/resque), and models of public rows (learner/task/draft/publicmodel). The order of
// shuffled rows follows from a seed that the system draws and a restart keeps. The floors of two operators are drawn
// from the system's entropy and a secret of the key file together, so that a copied machine does not repeat them.
func TestSeedsStayInSimulation(t *testing.T) {
	maySeed := []string{"internal/sim", "internal/test/dptest", "learner/planning", "learner/research/resque",
		"learner/task/draft/publicmodel", "internal/test/storetest", "internal/test/memory"}
	for _, f := range sources(t) {
		if f.test || slices.Contains(maySeed, f.dir()) || f.path == "randomizer/entropy.go" ||
			f.path == "stream/device/order.go" || f.path == "shuffle/split/floor.go" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && (sel.Sel.Name == "NewChaCha8" || sel.Sel.Name == "NewPCG") {
				t.Errorf("%s: %s: want the operating system's entropy, or one of %v", f.fset.Position(n.Pos()), sel.Sel.Name,
					maySeed)
			}
			return true
		})
	}
}

func TestFilesAreShort(t *testing.T) {
	for _, f := range sources(t) {
		if f.lines > 500 && !f.generated() {
			t.Errorf("%s has %d lines: want at most 500", f.path, f.lines)
		}
	}
}

// TestTypesHaveFewFields: a struct has at most 25 fields. One with more holds things that belong to types of their own.
func TestTypesHaveFewFields(t *testing.T) {
	const most = 25
	for _, f := range sources(t) {
		if f.test || f.generated() {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if body, ok := spec.Type.(*ast.StructType); ok && body.Fields.NumFields() > most {
				t.Errorf("%s: %s has %d fields: want at most %d", f.fset.Position(n.Pos()), spec.Name, body.Fields.NumFields(), most)
			}
			return true
		})
	}
}

// TestSecretsAreNoJSON: a type that prints a placeholder by a Format method marshals to one too, unless encoding/json
// finds no exported field in it.
func TestSecretsAreNoJSON(t *testing.T) {
	shown, formats, marshals := map[string]bool{}, map[string]token.Position{}, map[string]bool{}
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				shown[f.dir()+"."+n.Name.Name] = marshalled(n.Type)
			case *ast.FuncDecl:
				if n.Recv == nil {
					return true
				}
				switch of := f.dir() + "." + receiver(n.Recv.List[0].Type); n.Name.Name {
				case "Format":
					formats[of] = f.fset.Position(n.Pos())
				case "MarshalText":
					marshals[of] = true
				}
			}
			return true
		})
	}
	for of, at := range formats {
		if shown[of] && !marshals[of] {
			t.Errorf("%s: encoding/json shows what Format of %s hides: want MarshalText", at, of)
		}
	}
	if len(formats) < 15 {
		t.Errorf("found only %d types with Format: the walk is broken", len(formats))
	}
}

// marshalled reports whether encoding/json finds anything in a type: it is no struct, or has an exported field.
func marshalled(e ast.Expr) bool {
	s, ok := e.(*ast.StructType)
	return !ok || slices.ContainsFunc(s.Fields.List, func(field *ast.Field) bool {
		return len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported)
	})
}

func TestPackagesHaveComments(t *testing.T) {
	has := map[string]bool{}
	for _, f := range sources(t) {
		if !f.test {
			has[f.dir()] = has[f.dir()] || f.ast.Doc != nil || f.generated()
		}
	}
	for dir, ok := range has {
		if !ok {
			t.Errorf("package in %q has no package comment", dir)
		}
	}
}

func TestNoInitNoSleepInTests(t *testing.T) {
	files := sources(t)
	fakeClock := map[string]bool{} // folders whose tests run in synctest bubbles, where a sleep moves a fake clock
	for _, f := range files {
		fakeClock[f.dir()] = fakeClock[f.dir()] || f.test && importsSynctest(f)
	}
	for _, f := range files {
		if f.generated() {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: func init", f.fset.Position(fn.Pos()))
			}
		}
		if !f.test || fakeClock[f.dir()] {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sleep" {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s: a test sleeps", f.fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

func importsSynctest(f sourceFile) bool {
	_, foreign := f.imports()
	for _, p := range foreign {
		if p == "testing/synctest" {
			return true
		}
	}
	return false
}

func TestModuleFileIsPlain(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`(?m)^\s*(replace|exclude)\b`).Match(data) {
		t.Error("go.mod has a replace or exclude directive: go install would refuse it")
	}
}
