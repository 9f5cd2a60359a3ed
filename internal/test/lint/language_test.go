package lint

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// Forms of comments that make a reader guess. A doc comment begins with the name and a verb: what the function returns
// or does, what the value holds, in which unit.
var (
	riddle = regexp.MustCompile(
		`^(?:An? |The )?[\w.]+ (?:(?:is|are) (?:what|how|whether|when|where|whom?|whose|why|which|those|that)\b|says?\b)`)
	strange = regexp.MustCompile(`(?i)\b(?:that of which|those of which|whoever|anew|in place of|but for)\b`)
	clumsy  = regexp.MustCompile(
		`(?i)\b(?:(?:is|are|was|were) (?:that|those) (?:of|which)|that of which|those of which|whoever|anew|in place of|but for)\b`)
)

// TestCommentsStandAlone: no comment begins like "x is what ..." or "x says ...", or has words that few readers of
// English know.
func TestCommentsStandAlone(t *testing.T) {
	for _, f := range sources(t) {
		if f.generated() {
			continue
		}
		for _, group := range f.ast.Comments {
			text := strings.Join(strings.Fields(group.Text()), " ")
			if form := riddle.FindString(text); form != "" {
				t.Errorf("%s: %q: begin with a verb that says what it does, returns or holds", f.fset.Position(group.Pos()), form)
			} else if form := clumsy.FindString(text); form != "" {
				t.Errorf("%s: %q: write it plainly", f.fset.Position(group.Pos()), form)
			}
		}
	}
}

// TestTextsArePlain: no help, message or error of the programs has words that few readers of English know.
func TestTextsArePlain(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || f.generated() || strings.HasPrefix(f.path, "internal/test/") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				if form := strange.FindString(strings.Join(strings.Fields(text.Value), " ")); form != "" {
					t.Errorf("%s: %q: write it plainly", f.fset.Position(text.Pos()), form)
				}
			}
			return true
		})
	}
}

// TestLinesFit: fewer than one line in a hundred is longer than 120 columns; those hold a text or a table that cannot
// be broken.
func TestLinesFit(t *testing.T) {
	long, all := 0, 0
	for _, f := range sources(t) {
		if f.generated() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, f.path))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			all++
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > 120 {
				long++
			}
		}
	}
	if 100*long >= all {
		t.Errorf("%d of %d lines are longer than 120 columns: wrap them", long, all)
	}
}
