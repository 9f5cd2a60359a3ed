//go:build unix

package rundevice

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device"
)

// TestCount: the rows of files are counted before they are published, and a pipe, which would be empty then, is not
// touched.
func TestCount(t *testing.T) {
	spec := runtest.Parsed(t, strings.Replace(runtest.Words, "columns: [age, kind, income]", "header: true", 1))
	dir := t.TempDir()
	data := []byte("age,kind,income\n" + strings.Repeat("1,a,1\nbad\n", 50))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(data); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	file("day-1", data)
	file("day-2", data)
	cut := file("cut", packed.Bytes()[:packed.Len()/2])
	for path, want := range map[string]uint64{
		file("plain", data): 100, file("packed", packed.Bytes()): 100, filepath.Join(dir, "day-*"): 200, pipe: 0,
		os.DevNull: 0, "-": 0, cut: 0,
	} {
		n, err := Config{Settings: device.Settings{Logger: runtest.Discard()}, Data: path}.count(t.Context(), spec)
		switch {
		case n != want || (err != nil) != (path == cut):
			t.Errorf("%s: %d rows, %v, want %d", path, n, err, want)
		case err != nil && !strings.Contains(err.Error(), cut):
			t.Errorf("%v does not say which file breaks off", err)
		}
	}
	if _, err := (Config{Data: filepath.Join(dir, "none"), Format: task.CSV}).count(t.Context(), spec); err == nil {
		t.Error("a file that is not there was counted")
	}
}
