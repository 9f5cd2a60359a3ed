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
	papers, err := filepath.Glob(root + "/docs/*/*/*.md")
	if err != nil || len(papers) == 0 {
		t.Fatalf("no pages of papers found: %v", err)
	}
	docs = append(append(docs, papers...), root+"/README.md")
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

// A page of a paper says of every statement of its table in which files it lives, and which tests hold it.
func TestPapersNameFilesAndTests(t *testing.T) {
	pages, err := filepath.Glob(root + "/docs/measured/papers/*.md")
	if err != nil || len(pages) != 5 {
		t.Fatalf("pages %q, want one for each of five papers: %v", pages, err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		_, table, found := strings.Cut(string(text), "| statement | here | file | tests |\n| --- | --- | --- | --- |\n")
		table, _, _ = strings.Cut(table, "\n\n")
		rows := strings.Split(table, "\n")
		if !found || len(rows) < 7 {
			t.Errorf("%s: no table of statements", page)
			continue
		}
		for _, row := range rows {
			cells := strings.Split(strings.Trim(row, "| "), " | ")
			if len(cells) != 4 {
				t.Errorf("%s: %d cells in %s", page, len(cells), row)
				continue
			}
			files, tests := 0, 0
			for _, match := range quoted.FindAllStringSubmatch(cells[2], -1) {
				if _, err := os.Stat(filepath.Join(root, match[1])); err != nil {
					t.Errorf("%s: %v", page, err)
				}
				files++
			}
			for _, match := range quoted.FindAllStringSubmatch(cells[3], -1) {
				if testName.MatchString(match[1]) { // whether it exists: TestDocumentsNameWhatExists
					tests++
				}
			}
			if files == 0 || tests == 0 {
				t.Errorf("%s: %s has %d files and %d tests", page, cells[0], files, tests)
			}
		}
		for _, heading := range []string{"## Measured beside claimed", "## Where the paper errs"} {
			if !strings.Contains(string(text), "\n"+heading+"\n") {
				t.Errorf("%s: no section %q", page, heading)
			}
		}
	}
}
