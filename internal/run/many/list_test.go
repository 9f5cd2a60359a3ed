package many

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// declaration is a task file.
func declaration(name string) string {
	return fmt.Sprintf(`version: 1
name: %s
events: {format: jsonl}
features:
  columns:
    - {column: x, kind: numeric, scale: symmetric, min: -1, max: 1}
label: {column: y, positive: ["1"], negative: ["0"]}
model: {loss: logistic}
privacy: {epsilon: 1, delta: 1e-6}
schedule: {users: 20000}
`, name)
}

func write(t *testing.T, dir, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// listed returns the names on a list, and its faults.
func listed(t *testing.T, l List) (names []string, faults []Fault) {
	t.Helper()
	entries, faults, err := l.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, string(e.Name))
	}
	return names, faults
}

// TestFolder: which files of a folder are tasks, what is wrong with the others, and what changes change.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	list, err := NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if names, faults := listed(t, list); names != nil || faults != nil {
		t.Errorf("an empty folder: %v, %v", names, faults)
	}
	write(t, dir, "z.yaml", declaration("churn"))
	write(t, dir, "y.yml", declaration("ads"))
	write(t, dir, ".hidden.yaml", declaration("hidden"))
	write(t, dir, "notes.txt", "no task")
	write(t, dir, "bad.yaml", "version: 1\nname: Bad\n")
	write(t, dir, "twice.yaml", declaration("ads"))
	if err := os.Mkdir(filepath.Join(dir, "below.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	names, faults := listed(t, list)
	if !slices.Equal(names, []string{"ads", "churn"}) || len(faults) != 2 {
		t.Fatalf("%v, %v", names, faults)
	}
	if !strings.HasSuffix(faults[0].File, "bad.yaml") || !strings.HasSuffix(faults[1].File, "y.yml") ||
		!strings.Contains(faults[1].Err.Error(), "twice.yaml too, which counts") {
		t.Errorf("%v", faults)
	}

	// A file that becomes worse stays the task that it was; one that becomes better is one.
	write(t, dir, "z.yaml", declaration("churn")+"wrong: 1\n")
	if text := faults[0].Err.Error(); strings.Contains(text, "bad.yaml") || !strings.Contains(text, "name") {
		t.Errorf("the error of a file that is named already: %s", text)
	}
	write(t, dir, "bad.yaml", declaration("bad"))
	if err := os.Remove(filepath.Join(dir, "twice.yaml")); err != nil {
		t.Fatal(err)
	}
	names, faults = listed(t, list)
	if !slices.Equal(names, []string{"ads", "bad", "churn"}) || len(faults) != 1 || !strings.HasSuffix(faults[0].File, "z.yaml") {
		t.Errorf("%v, %v", names, faults)
	}
	if err := os.Remove(filepath.Join(dir, "z.yaml")); err != nil {
		t.Fatal(err)
	}
	if names, faults = listed(t, list); !slices.Equal(names, []string{"ads", "bad"}) || len(faults) != 0 {
		t.Errorf("%v, %v", names, faults)
	}

	// Another text of the same length and name is another entry.
	before, _, _ := list.Tasks()
	text := strings.Replace(declaration("ads"), "20000", "30000", 1)
	write(t, dir, "y.yml", text)
	if err := os.Chtimes(filepath.Join(dir, "y.yml"), time.Time{}, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	after, _, _ := list.Tasks()
	if before[0].sum == after[0].sum || before[1].sum != after[1].sum || after[0].Spec.Schedule.Users != 30000 {
		t.Error("a changed file was not read again, or an unchanged one is another")
	}
}

// TestFileThatComesLater: a task whose file names another that is not there yet is one as soon as it is, although its own
// file does not change.
func TestFileThatComesLater(t *testing.T) {
	dir := t.TempDir()
	text := strings.Replace(declaration("later"), "model: {loss: logistic}", "model: {loss: logistic, start: start.json}", 1)
	write(t, dir, "later.yaml", text)
	list, err := NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, faults := listed(t, list)
	if len(faults) != 1 || !strings.Contains(faults[0].Err.Error(), "start.json") {
		t.Fatalf("%v", faults)
	}
	write(t, dir, "start.json", "{}")
	if names, faults := listed(t, list); !slices.Equal(names, []string{"later"}) || len(faults) != 0 {
		t.Errorf("the file is there now: %v, %v", names, faults)
	}
}

func TestNoFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file", "")
	for _, path := range []string{filepath.Join(dir, "missing"), filepath.Join(dir, "file")} {
		if _, err := NewFolder(path); err == nil || !strings.HasPrefix(err.Error(), "folder of task files: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
