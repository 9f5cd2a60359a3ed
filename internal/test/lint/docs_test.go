package lint

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

var (
	quoted   = regexp.MustCompile("`([^`\n]+)`")
	testName = regexp.MustCompile(`^(Test|Fuzz|Example|Benchmark)[A-Z]\w*$`)
	goPath   = regexp.MustCompile(`^[a-z][a-z0-9/]*\.go$`)
	goFile   = regexp.MustCompile(`\b[a-z][a-z0-9_]*\.go\b`)
	inText   = regexp.MustCompile(`\b(Test|Fuzz|Benchmark)[A-Z]\w*`)
	member   = regexp.MustCompile(`^([A-Za-z]\w*)\.([A-Za-z]\w*)$`) // of a type or a package
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

// TestCommentsNameWhatExists: files of Go and tests that comments name are there. A test may be named by its beginning.
func TestCommentsNameWhatExists(t *testing.T) {
	files, tests, seen := map[string]bool{"nats.go": true}, "", 0 // a client of NATS, too
	for _, f := range sources(t) {
		files[filepath.Base(f.path)] = true
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				tests += "\n" + fn.Name.Name
			}
		}
	}
	for _, f := range sources(t) {
		for _, c := range f.ast.Comments {
			for _, name := range goFile.FindAllString(c.Text(), -1) {
				if seen++; !files[name] {
					t.Errorf("%s: a comment names %s, which does not exist", f.fset.Position(c.Pos()), name)
				}
			}
			for _, name := range inText.FindAllString(c.Text(), -1) {
				if seen++; !strings.Contains(tests, "\n"+name) {
					t.Errorf("%s: a comment names %s, which does not exist", f.fset.Position(c.Pos()), name)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("found only %d names in comments: the pattern is broken", seen)
	}
}

// page finds a page that a text of the program names, and the section after a comma.
var page = regexp.MustCompile(`\bdocs/[a-z0-9/-]+\.md\b(?:,\s+"?([^"():;.]+))?`)

// bold finds the words in bold that a paragraph begins with.
var bold = regexp.MustCompile(`(?m)^\*\*([^*]+)\*\*`)

// TestTextsNamePages: the pages that help, messages, errors and comments name are there, and have the sections that a
// text names after a page: the words after the comma begin with a heading of it, or with words in bold that a paragraph
// begins with.
func TestTextsNamePages(t *testing.T) {
	seen, sections := 0, 0
	for _, f := range sources(t) {
		if f.generated() {
			continue
		}
		look := func(at token.Pos, text string, comment bool) {
			for _, match := range page.FindAllStringSubmatch(text, -1) {
				name, words, _ := strings.Cut(match[0], ",")
				doc := filepath.Join(root, name)
				if seen++; !exists(doc) {
					t.Errorf("%s names %s, which does not exist", f.fset.Position(at), name)
				} else if words != "" && !comment {
					sections++
					if !begins(t, doc, match[1]) {
						t.Errorf("%s: %s has no section for %q", f.fset.Position(at), name, match[1])
					}
				}
			}
		}
		for _, c := range f.ast.Comments {
			look(c.Pos(), c.Text(), true)
		}
		if !f.test {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				e, ok := n.(ast.Expr)
				if !ok {
					return true
				}
				text := literal(e)
				look(e.Pos(), text, false)
				return text == ""
			})
		}
	}
	if seen < 100 || sections < 10 {
		t.Errorf("found only %d pages and %d sections in texts: the pattern is broken", seen, sections)
	}
}

// literal returns the text of a string literal, or of those that are put together.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value)
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return literal(e.X) + literal(e.Y)
		}
	}
	return ""
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// begins reports whether words begin with a heading of a document, or with words in bold.
func begins(t *testing.T, doc, words string) bool {
	t.Helper()
	anchors := headings(t, doc)
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range bold.FindAllStringSubmatch(string(text), -1) {
		anchors[anchor(match[1])] = true
	}
	words = anchor(strings.Join(strings.Fields(words), " "))
	for a := range anchors {
		if words == a || strings.HasPrefix(words, a+"-") {
			return true
		}
	}
	return false
}

// declared returns the types and packages of the module by name, and what each of them has: methods and fields as
// "Type.name", declarations as "package.Name". Fields of messages are there under their names in the protocol too.
func declared(t *testing.T) (owners, members map[string]bool) {
	owners, members = map[string]bool{}, map[string]bool{}
	list := func(owner string, fields *ast.FieldList) {
		for _, f := range fields.List {
			for _, n := range f.Names {
				members[owner+"."+n.Name] = true
				members[owner+"."+snake(n.Name)] = true
			}
		}
	}
	for _, f := range sources(t) {
		pkg := f.ast.Name.Name
		owners[pkg] = true
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				owner := pkg
				if d.Recv != nil {
					owner = receiver(d.Recv.List[0].Type)
				}
				members[owner+"."+d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.ValueSpec:
						for _, n := range s.Names {
							members[pkg+"."+n.Name] = true
						}
					case *ast.TypeSpec:
						owners[s.Name.Name], members[pkg+"."+s.Name.Name] = true, true
						switch body := s.Type.(type) {
						case *ast.StructType:
							list(s.Name.Name, body.Fields)
						case *ast.InterfaceType:
							list(s.Name.Name, body.Methods)
						}
					}
				}
			}
		}
	}
	return owners, members
}

// receiver returns the name of the type of a method's receiver, without its parameters.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// snake returns a name such as StaleMs in the form of the protocol, stale_ms.
func snake(name string) string {
	var out strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// TestDocumentsNameMembers: a method or field of a type, or a declaration of a package, that a reference or a proof
// names is there. Names in which both parts are lower case are keys of task files, too, and are not looked at.
func TestDocumentsNameMembers(t *testing.T) {
	owners, members := declared(t)
	seen := 0
	for _, folder := range []string{"reference", "proofs"} {
		docs, err := filepath.Glob(root + "/docs/" + folder + "/*.md")
		if err != nil || len(docs) == 0 {
			t.Fatalf("no documents found: %v", err)
		}
		for _, doc := range docs {
			text, err := os.ReadFile(doc)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range quoted.FindAllStringSubmatch(string(text), -1) {
				parts := member.FindStringSubmatch(match[1])
				if parts == nil || !owners[parts[1]] || strings.ToLower(match[1]) == match[1] {
					continue
				}
				if seen++; !members[match[1]] {
					t.Errorf("%s names %s, which does not exist", doc, match[1])
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("found only %d members in the documents: the pattern is broken", seen)
	}
}

// headings returns the anchors of a document's headings.
func headings(t *testing.T, doc string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		out[anchor(match[1])] = true
	}
	return out
}

// anchor returns the anchor of a heading: lower case, punctuation dropped, spaces as hyphens.
func anchor(heading string) string {
	kept := regexp.MustCompile(`[^\pL\pN_ -]`).ReplaceAllString(strings.ToLower(heading), "")
	return "#" + strings.ReplaceAll(kept, " ", "-")
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
