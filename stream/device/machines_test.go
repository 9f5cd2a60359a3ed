package device

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// machines are the files that decide, see the package comment.
var machines = []string{"admit.go", "beat.go", "clock.go", "contract.go", "core.go", "places.go", "queue.go", "refusals.go", "round.go",
	"rounds.go", "rules.go", "sender.go", "settler.go", "times.go", "uplink.go"}

// TestMachinesReachNothing: what decides has no clock, generator, goroutine, network, store or ledger of its own, but
// effects alone.
func TestMachinesReachNothing(t *testing.T) {
	imports := []string{"crypto/rand", "math/rand", "math/rand/v2", "net", "os", "sync"}
	times := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
	ports := []string{"Store", "Transport"}
	for _, name := range machines {
		files := token.NewFileSet()
		file, err := goparser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if slices.Contains(imports, strings.Trim(i.Path.Value, `"`)) {
				t.Errorf("%s imports %s: ask for an effect, or draw by chance", name, i.Path.Value)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%v: a goroutine: the courier has those", files.Position(n.Pos()))
			case *ast.SelectorExpr:
				of, _ := n.X.(*ast.Ident)
				if of != nil && of.Name == "time" && slices.Contains(times, n.Sel.Name) {
					t.Errorf("%v: time.%s: ask now", files.Position(n.Pos()), n.Sel.Name)
				}
				if slices.Contains(ports, n.Sel.Name) {
					t.Errorf("%v: %s: ask for an effect", files.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}
