package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/panlearn/panlearn"

// root is the repository as seen from this package.
const root = "../../.."

// A sourceFile is one Go file of the repository.
type sourceFile struct {
	path  string // slash-separated, from the repository's root
	test  bool
	lines int
	ast   *ast.File
	fset  *token.FileSet
}

// dir returns the package's folder, "" for the root.
func (f sourceFile) dir() string {
	if d := path.Dir(f.path); d != "." {
		return d
	}
	return ""
}

func (f sourceFile) generated() bool { return strings.HasSuffix(f.path, ".pb.go") }

// imports lists what the file imports; our own packages without the module path.
func (f sourceFile) imports() (own, foreign []string) {
	for _, spec := range f.ast.Imports {
		p := strings.Trim(spec.Path.Value, `"`)
		if rest, ok := strings.CutPrefix(p, module); ok {
			own = append(own, strings.TrimPrefix(rest, "/"))
		} else {
			foreign = append(foreign, p)
		}
	}
	return own, foreign
}

// sources returns all Go files of the repository, parsed once for all tests.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	files, err := parsedSources()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found %d Go files below %s: the walk is broken", len(files), root)
	}
	return files
}

var parsedSources = sync.OnceValues(func() (files []sourceFile, err error) {
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name != ".." && p != root && (strings.HasPrefix(name, ".") || name == "testdata" ||
				name == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		files = append(files, sourceFile{
			path: filepath.ToSlash(rel), test: strings.HasSuffix(p, "_test.go"),
			lines: fset.File(parsed.Pos()).LineCount(), ast: parsed, fset: fset,
		})
		return nil
	})
	return files, err
})
