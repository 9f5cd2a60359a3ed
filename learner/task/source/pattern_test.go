package source

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/learner/task"
)

// folderOf writes files and returns their folder.
func folderOf(t testing.TB, files map[string][]byte) string {
	t.Helper()
	folder := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// A key identifies a row of a pattern of files.
type key struct {
	file   string
	number int64
	label  string
}

func keys(t *testing.T, path string, m *task.FeatureMap) (out []key) {
	t.Helper()
	r, err := Open(path, m)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for row, err := range r.All() {
		var bad *task.RowError
		if errors.As(err, &bad) {
			if bad.File != row.File || bad.Line != row.Line {
				t.Errorf("%v is of row %d in %s", bad, row.Line, row.File)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		file := row.File
		if file != "" && !filepath.IsAbs(file) {
			t.Errorf("%q is not absolute", file)
		}
		out = append(out, key{filepath.Base(file), row.Number, row.Label})
	}
	return out
}

// TestPattern: the files of a pattern are one stream, in lexical order, each with its own compression and
// header; a row is known by its file and its line there, so that files may be added anywhere.
func TestPattern(t *testing.T) {
	m := compile(t, csvTask)
	head := "age,job,y\n"
	folder := folderOf(t, map[string][]byte{
		"day2.csv.gz":  zip(t, []byte("y,job,age\n1,a,20\n0,a,21\n")),
		"day1.csv":     []byte(head + "10,a,1\nbad\n12,a,0"),
		"day3.csv.zst": zstdOf(t, []byte(head)),
		"day4.csv":     []byte(head + "\n40,a,1\n"),
		"other.txt":    []byte("not of the pattern"),
	})
	pattern := filepath.Join(folder, "day*.csv*")
	want := []key{{"day1.csv", 1, "1"}, {"day1.csv", 2, ""}, {"day1.csv", 3, "0"}, {"day2.csv.gz", 1, "1"},
		{"day2.csv.gz", 2, "0"}, {"day4.csv", 2, "1"}}
	if got := keys(t, pattern, m); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// A file that comes before the others changes nothing of theirs.
	if err := os.WriteFile(filepath.Join(folder, "day0.csv"), []byte(head+"1,a,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, pattern, m); !slices.Equal(got, append([]key{{"day0.csv", 1, "1"}}, want...)) {
		t.Errorf("after a file was added: %v", got)
	}
	// A pattern of one file names it as a pattern of many does; a file that is named is not a pattern.
	if got := keys(t, filepath.Join(folder, "day0*"), m); !slices.Equal(got, []key{{"day0.csv", 1, "1"}}) {
		t.Errorf("a pattern of one file: %v", got)
	}
	if got := keys(t, filepath.Join(folder, "day0.csv"), m); !slices.Equal(got, []key{{".", 1, "1"}}) {
		t.Errorf("a file: %v", got)
	}
	odd := filepath.Join(folder, "week[1].csv")
	if err := os.WriteFile(odd, []byte(head+"1,a,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, odd, m); len(got) != 1 {
		t.Errorf("a file whose name looks like a pattern: %v", got)
	}
}

// TestPatternIsChecked: every file is looked at before a row of any is handed out; damage later on names the
// file.
func TestPatternIsChecked(t *testing.T) {
	m := compile(t, csvTask)
	good := []byte("age,job,y\n10,a,1\n11,a,1\n")
	for name, bad := range map[string][]byte{"header": []byte("age,job\n1,a\n"), "gzip": zip(t, good)[:5], "empty": nil} {
		folder := folderOf(t, map[string][]byte{"a": good, "b": bad})
		r, err := Open(filepath.Join(folder, "*"), m)
		if err == nil || !strings.Contains(err.Error(), filepath.Join(folder, "b")) {
			t.Errorf("%s: got %v, %v", name, r, err)
		}
	}
	long := []byte("age,job,y\n" + strings.Repeat("10,a,1\n", 10000))
	for name, pack := range map[string]func(testing.TB, []byte) []byte{"gzip": zip, "zstd": zstdOf} {
		packed := pack(t, long)
		folder := folderOf(t, map[string][]byte{"a": good, "b": packed[:len(packed)-6]})
		r, err := Open(filepath.Join(folder, "*"), m)
		for err == nil {
			_, err = r.Next()
		}
		var row *task.RowError
		if err == io.EOF || errors.As(err, &row) || !strings.Contains(err.Error(), filepath.Join(folder, "b")) {
			t.Errorf("%s: reading ended with %v", name, err)
		}
	}
	for path, want := range map[string]error{filepath.Join(t.TempDir(), "*.csv"): fs.ErrNotExist,
		"[": filepath.ErrBadPattern} {
		if _, err := Open(path, m); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
}

// TestPatternOfLinks: a link to one of the files, under a name of the pattern, would have its rows twice: in
// two reports, or twice in one. Where rows have keys, or name their person, they are not counted twice. A link
// to a file outside the pattern is a file.
func TestPatternOfLinks(t *testing.T) {
	m := compile(t, csvTask)
	folder := folderOf(t, map[string][]byte{"day1.csv": []byte("age,job,y\n10,a,1\n"),
		"other": []byte("age,job,y\n20,a,0\n")})
	link := func(to, name string) {
		if err := os.Symlink(filepath.Join(folder, to), filepath.Join(folder, name)); err != nil {
			t.Skip(err)
		}
	}
	link("other", "day2.csv")
	pattern := filepath.Join(folder, "day*.csv")
	if got := keys(t, pattern, m); len(got) != 2 {
		t.Errorf("a link to another file: %v", got)
	}
	var mismatch *SchemaError
	refused := func() {
		t.Helper()
		if r, err := Open(pattern, m); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), "one file") {
			t.Errorf("got %v, %v", r, err)
		}
	}
	hard := filepath.Join(folder, "day0.csv")
	if err := os.Link(filepath.Join(folder, "day1.csv"), hard); err != nil {
		t.Fatal(err)
	}
	refused()
	if err := os.Remove(hard); err != nil {
		t.Fatal(err)
	}
	link("day1.csv", "day-newest.csv")
	refused()
	for _, known := range []func(*task.Schema){func(s *task.Schema) { s.Events.Key = "job" },
		func(s *task.Schema) { s.User = "job" }} {
		schema := m.Schema()
		known(&schema)
		r, err := openData(pattern, schema)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPatternIDX: the labels of idx lie beside the images, or are named; a pattern may match both.
func TestPatternIDX(t *testing.T) {
	m := compile(t, idxTask)
	images, labels := idxFiles([]byte{0, 1, 2, 3, 255, 0, 0, 7}, []byte{3, 0})
	folder := folderOf(t, map[string][]byte{
		"train-images-idx3-ubyte.gz": zip(t, images), "train-labels-idx1-ubyte.gz": zip(t, labels),
		"t10k-images-idx3-ubyte": images, "t10k-labels-idx1-ubyte": zstdOf(t, labels),
	})
	want := []key{{"t10k-images-idx3-ubyte", 0, "3"}, {"t10k-images-idx3-ubyte", 1, "0"}, {"train-images-idx3-ubyte.gz", 0,
		"3"}, {"train-images-idx3-ubyte.gz", 1, "0"}}
	for _, pattern := range []string{"*", "*images*"} {
		if got := keys(t, filepath.Join(folder, pattern), m); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", pattern, got, want)
		}
	}
	if got := keys(t, filepath.Join(folder, "t10k-images-idx3-ubyte"), m); len(got) != 2 {
		t.Errorf("by convention: %v", got)
	}
	if _, err := Open(filepath.Join(folder, "t10k-labels-idx1-ubyte"), m); err == nil ||
		!strings.Contains(err.Error(), "images,labels") {
		t.Errorf("labels alone: %v", err)
	}
	if err := os.Remove(filepath.Join(folder, "t10k-labels-idx1-ubyte")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(folder, "t10k-images-idx3-ubyte"), m); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("images without labels: %v", err)
	}
}

// TestDecompressionBomb: a stream that decompresses to far more than it is long costs a line, and not what it
// holds: the line is too long.
func TestDecompressionBomb(t *testing.T) {
	m := compile(t, svmTask)
	bomb := []byte("1 1:1\n" + strings.Repeat("1", 32<<20) + "\n1 1:1\n")
	for name, packed := range map[string][]byte{"gzip": zip(t, bomb), "zstd": zstdOf(t, bomb)} {
		path := write(t, packed)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := Open(path, m)
		if err != nil {
			t.Fatal(err)
		}
		check(t, outcomes(t, r), []outcome{{1, 0, "1"}, {2, 1, "bad "}, {3, 2, "1"}})
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; spent > 24<<20 { // a zstd window is 8 MiB
			t.Errorf("%s: %d bytes were allocated for a line of %d", name, spent, 32<<20)
		}
	}
}

// TestPatternFileIsReplaced: a file of a pattern that was replaced after it was checked ends the reading once,
// with its name.
func TestPatternFileIsReplaced(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"header that is too long": {strings.Repeat("x", 200) + "\n", "header: longer than events.max_line"},
		"another header":          {"age,y\n1,1\n", `column "job" is not in the header`},
		"gone":                    {"", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			good := []byte("age,job,y\n1,a,1\n")
			folder := folderOf(t, map[string][]byte{"1.csv": good, "2.csv": good})
			r, err := Open(filepath.Join(folder, "*.csv"), compile(t, csvTask))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			second := filepath.Join(folder, "2.csv")
			if err := os.Remove(second); err != nil {
				t.Fatal(err)
			}
			if c.data != "" {
				if err := os.WriteFile(second, []byte(c.data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			calls := 0
			for _, err = range r.All() {
				if calls++; calls > 2 {
					t.Fatal("the reading does not end")
				}
			}
			if calls != 2 || err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "2.csv") {
				t.Errorf("call %d: %v, want %q", calls, err, c.want)
			}
		})
	}
}
