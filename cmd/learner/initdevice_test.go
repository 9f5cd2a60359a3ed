package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInitIntoWhatIsNoFile checks that init leaves no files beside a device, and that it names a folder as one.
func TestInitIntoWhatIsNoFile(t *testing.T) {
	folder := t.TempDir()
	sample, null := filepath.Join(t.TempDir(), "sample.csv"), filepath.Join(folder, "null.yaml")
	bent(t, sample, 1, 200)
	if err := os.Symlink(os.DevNull, null); err != nil {
		t.Fatal(err)
	}
	jsonOf(t, newInit(), nil, "--data", sample, "-o", null)
	if there, err := os.ReadDir(folder); err != nil || len(there) != 1 {
		t.Errorf("beside a device stand %v, %v", there, err)
	}
	c := newInit()
	c.SetArgs([]string{"--data", sample, "-o", folder, "--force"})
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("into a folder: %v", err)
	}
	if there, err := os.ReadDir(filepath.Dir(folder)); err != nil || len(there) != 2 {
		t.Errorf("beside a folder stand %v, %v", there, err)
	}
}
