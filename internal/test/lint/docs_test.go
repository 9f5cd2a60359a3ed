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
	quoted   = regexp.MustCompile("`([^`\n]+)`")
	testName = regexp.MustCompile(`^(Test|Fuzz|Example|Benchmark)[A-Z]\w*$`)
	goPath   = regexp.MustCompile(`^[a-z][a-z0-9/]*\.go$`)
)

// The documents name tests and files as evidence: what they name must exist.
func TestDocumentsNameWhatExists(t *testing.T) {
	names, paths := map[string]bool{}, map[string]bool{}
	for _, f := range sources(t) {
		paths[f.path], paths[filepath.Base(f.path)] = true, true
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				names[fn.Name.Name] = true
			}
		}
	}
	docs, err := filepath.Glob(root + "/docs/*/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatalf("no documents found: %v", err)
	}
	docs = append(docs, root+"/README.md")
	seen := 0
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range quoted.FindAllStringSubmatch(string(text), -1) {
			word := match[1]
			switch {
			case testName.MatchString(word):
				seen++
				if !names[word] {
					t.Errorf("%s names %s, which does not exist", doc, word)
				}
			case goPath.MatchString(word):
				seen++
				if !paths[word] {
					t.Errorf("%s names %s, which does not exist", doc, word)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("found only %d names in the documents: the pattern is broken", seen)
	}
}

// headings returns the anchors of a document's headings: lower case, punctuation dropped, spaces as hyphens.
func headings(t *testing.T, doc string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		anchor := regexp.MustCompile(`[^\pL\pN_ -]`).ReplaceAllString(strings.ToLower(match[1]), "")
		out["#"+strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return out
}
