package task

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShippedTasks: every task file that ships parses, compiles, and survives the canonical form.
func TestShippedTasks(t *testing.T) {
	files, err := filepath.Glob("../../deploy/tasks/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no shipped task files found: %v", err)
	}
	for _, f := range files {
		s, err := Load(f, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if want := filepath.Base(f); s.Name+".yaml" != want {
			t.Errorf("%s: name %s differs from the file's", want, s.Name)
		}
		m, err := s.Compile()
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		requireCanonical(t, s)
		t.Logf("%s: d = %d, X = %.4f", s.Name, m.Dim(), m.Bound())
	}
}

// TestDocumentedTask: the task in the documentation parses, compiles, and survives the canonical form.
func TestDocumentedTask(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/tasks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(text), "```yaml file=flowers.yaml\n")
	file, _, ends := strings.Cut(rest, "```\n")
	if !begins || !ends {
		t.Fatal("docs/reference/tasks.md has no task file")
	}
	s, err := Parse([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if m.Dim() != 6 {
		t.Errorf("d = %d, want 2 numbers, 3 words and the intercept", m.Dim())
	}
	requireCanonical(t, s)
}
