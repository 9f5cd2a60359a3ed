package pebblestore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
)

const holderFolder = "PANLEARN_TEST_HOLDER_FOLDER"

// TestMain runs the tests, or, in the second process of TestSecondProcess, holds a folder until its input ends.
func TestMain(m *testing.M) {
	dir := os.Getenv(holderFolder)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := Open(dir, Options{})
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString("held\n")
	io.Copy(io.Discard, os.Stdin)
	if err := s.Close(); err != nil {
		os.Exit(1)
	}
}

// TestSecondProcess checks for ErrLocked while another process holds the folder, read-only too, and that the folder
// opens after that process was killed.
func TestSecondProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	script := storetest.Script{Rounds: 2}
	if err := script.Advance(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holderFolder+"="+dir)
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("second process says %q, %v", line, err)
	}
	for _, readOnly := range []bool{false, true} {
		if _, err := Open(dir, Options{ReadOnly: readOnly}); !errors.Is(err, state.ErrLocked) {
			t.Errorf("open (read-only %t) while another process holds the folder: %v, want ErrLocked", readOnly, err)
		}
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	holder.Wait() // it was killed, so it has an error in any case
	s, err = Open(dir, Options{})
	if err != nil {
		t.Fatalf("open after the other process was killed: %v", err)
	}
	if n, err := script.Check(context.Background(), s); err != nil || n != 1 {
		t.Errorf("%d commits, %v, want 1", n, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestSameProcess checks for ErrLocked under every name of the folder: the operating system's lock lets its own
// process through.
func TestSameProcess(t *testing.T) {
	root := t.TempDir()
	dir, link := filepath.Join(root, "state"), filepath.Join(root, "link")
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, link, filepath.Join(root, "x", "..", "state")} {
		if _, err := Open(name, Options{}); !errors.Is(err, state.ErrLocked) {
			t.Errorf("open %q in the same process: %v, want ErrLocked", name, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFolderModes checks for mode 0700 of all that Open creates, and for an error that is not ErrLocked where Open may
// not write.
func TestFolderModes(t *testing.T) {
	root := t.TempDir()
	s, err := Open(filepath.Join(root, "new", "state"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new", "new/state"} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o700 {
			t.Errorf("folder %s has mode %o, want 700", name, mode)
		}
	}
	old := filepath.Join(root, "old")
	if err := os.Mkdir(old, 0o755); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if s, err = Open(old, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "open to other users") {
		t.Errorf("no warning about a folder of mode 755: %s", &log)
	}
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", file, filepath.Join(file, "state")} {
		if _, err := Open(dir, Options{}); err == nil || errors.Is(err, state.ErrLocked) || errors.Is(err, state.ErrEmpty) {
			t.Errorf("open %q: %v, want an error of its own", dir, err)
		}
	}
}
