package lint

import (
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Forms of comments that make a reader guess. A doc comment begins with the name and a verb: what the function returns
// or does, what the value holds, in which unit.
var (
	riddle = regexp.MustCompile(
		`^(?:An? |The )?[\w.]+ (?:(?:is|are) (?:what|how|whether|when|where|whom?|whose|why|which|those|that)\b|says?\b|` +
			`tells (?:of|how|what|whether|when|where|why|which)\b)`)
	strange = regexp.MustCompile(`(?i)\b(?:that of which|those of which|whoever|anew|in place of|but for)\b`)
	clumsy  = regexp.MustCompile(
		`(?i)\b(?:(?:is|are|was|were) (?:that|those) (?:of|which)|that of which|those of which|whoever|anew|in place of|but for|` +
			`of late|as it was answered|stand(?:s|ing)? by|stood by|(?:stands?|stood) (?:still|beside|elsewhere)|` +
			`answers nobody|(?:whom?|nobody) (?:is|are|was|were) told)\b`)
)

// TestCommentsStandAlone: no comment begins like "x is what ...", "x says ..." or "x tells how ...", or has words that
// few readers of English know.
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

// TestClumsyForms: forms that have to be read twice are found, and their plain words are not.
func TestClumsyForms(t *testing.T) {
	for text, want := range map[string]string{
		"The sum is that of the cohort.":                "is that of",
		"Whoever loses erases its totals.":              "Whoever",
		"why the broker took no report of late":         "of late",
		"a process that stands by":                      "stands by",
		"One process works, and another is standing by": "standing by",
		"The other stood by and ended with it.":         "stood by",
		"the monotonic clock may stand still":           "stand still",
		"the Open that stands beside a Close":           "stands beside",
		"the round, as it was answered":                 "as it was answered",
		"A process that slept answers nobody.":          "answers nobody",
		"who is told that there is room waits":          "who is told",
		"nobody was told of it":                         "nobody was told",
		"a process that waits for the lease":            "",
		"The later the round, the longer the wait.":     "",
		"a bystander, and an understanding by both":     "",
	} {
		if got := clumsy.FindString(text); got != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
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

// TestHelpFits: the help of a command is wrapped at 92 columns.
func TestHelpFits(t *testing.T) {
	texts := 0
	for _, f := range sources(t) {
		if !strings.HasPrefix(f.path, "cmd/") || f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			pair, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			key, isName := pair.Key.(*ast.Ident)
			text, isText := pair.Value.(*ast.BasicLit)
			if !isName || !isText || key.Name != "Long" || text.Value[0] != '`' {
				return true
			}
			texts++
			for line := range strings.Lines(text.Value) {
				if n := utf8.RuneCountInString(strings.Trim(line, "`\n")); n > 92 {
					t.Errorf("%s: a line of %d columns: %s", f.fset.Position(text.Pos()), n, line)
				}
			}
			return true
		})
	}
	if texts < 30 {
		t.Errorf("read %d texts: the search is broken", texts)
	}
}

// TestDocumentsArePlain: no paragraph of a document, of a file in deploy/, of the TypeScript client, of a script or of
// an OpenAPI description has words that few readers of English know. Fenced blocks of documents are not read, because
// they hold what programs print, nor is CHANGELOG.md, whose old entries stay as they are.
func TestDocumentsArePlain(t *testing.T) {
	pages, others := 0, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch name := d.Name(); {
			case path == root, !strings.HasPrefix(name, ".") && name != "node_modules" && name != "bin":
				return nil
			}
			return fs.SkipDir
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		page := filepath.Ext(rel) == ".md" && rel != "CHANGELOG.md"
		switch {
		case page:
			pages++
		case strings.HasPrefix(rel, "deploy/"), strings.HasPrefix(rel, "clients/typescript/src/"),
			slices.Contains([]string{".txtar", ".py", ".sh"}, filepath.Ext(rel)), d.Name() == "openapi.json":
			others++
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line, form := range strangeParagraphs(string(text), page) {
			t.Errorf("%s:%d: %q: write it plainly", rel, line, form)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages < 40 || others < 20 {
		t.Errorf("read %d documents and %d other files: the walk is broken", pages, others)
	}
}

// strangeParagraphs returns the first strange form of each paragraph of a text that has one, by the paragraph's first
// line, from 1. A form may go over the end of a line, also of a comment. Fenced blocks are left out if fences is set.
func strangeParagraphs(text string, fences bool) map[int]string {
	found, words, first, inside := map[int]string{}, []string(nil), 1, false
	end := func(next int) {
		if form := strange.FindString(strings.Join(words, " ")); form != "" {
			found[first] = form
		}
		words, first = nil, next
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		fence := fences && strings.HasPrefix(line, "```")
		if fence {
			inside = !inside
		}
		if fence || inside || line == "" {
			end(n + 1)
			continue
		}
		words = append(words, strings.Fields(strings.TrimLeft(line, "#/*> "))...)
	}
	end(n + 1)
	return found
}

// TestStrangeParagraphs: a form is found in a paragraph and over the end of a line, and not in a fenced block.
func TestStrangeParagraphs(t *testing.T) {
	const text = "Plain.\n\nIt stands in\nplace of another.\n\n```text\nbegun anew\n```\n\n# a comment, but\n# for one\n"
	want := map[int]string{3: "in place of", 10: "but for"}
	if got := strangeParagraphs(text, true); !maps.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	want[6] = "anew"
	if got := strangeParagraphs(text, false); !maps.Equal(got, want) {
		t.Errorf("found %v where fences mean nothing, want %v", got, want)
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
