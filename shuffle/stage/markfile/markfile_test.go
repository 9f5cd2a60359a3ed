package markfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/stream"
)

func opened(t *testing.T, dir string) *Marks {
	t.Helper()
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func wantClaimed(t *testing.T, m *Marks, task stream.Hash, want uint64) {
	t.Helper()
	if got, err := m.Claimed(task); err != nil || got != want {
		t.Errorf("claimed: %d, %v, want %d", got, err, want)
	}
}

// TestMarksStay across handles, per task, and never fall.
func TestMarksStay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	one, two := stream.Hash{1}, stream.Hash{2}
	m := opened(t, dir)
	wantClaimed(t, m, one, 0)
	for _, step := range []struct{ claim, want uint64 }{{1, 1}, {2, 2}, {2, 2}, {1, 2}, {7, 7}, {1<<64 - 1, 1<<64 - 1}, {3, 1<<64 - 1}} {
		if err := m.Claim(one, step.claim); err != nil {
			t.Fatal(err)
		}
		wantClaimed(t, m, one, step.want)
		wantClaimed(t, opened(t, dir), one, step.want)
	}
	wantClaimed(t, m, two, 0)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v, want mode 0700", info.Mode(), err)
	}
}

// TestDeathWhileMarking leaves a temporary file, whole or torn: the old mark holds, and the next mark is written.
func TestDeathWhileMarking(t *testing.T) {
	for _, torn := range []string{"", "9", encode(stream.Hash{1}, 9)} {
		dir := t.TempDir()
		m := opened(t, dir)
		if err := m.Claim(stream.Hash{1}, 4); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(m.path(stream.Hash{1})+temporary, []byte(torn), 0o600); err != nil {
			t.Fatal(err)
		}
		wantClaimed(t, opened(t, dir), stream.Hash{1}, 4)
		if err := m.Claim(stream.Hash{1}, 5); err != nil {
			t.Fatal(err)
		}
		wantClaimed(t, m, stream.Hash{1}, 5)
	}
}

// TestDamagedMark: every flipped bit, every cut, another task's mark: an error, and no lower mark, also for Claim.
func TestDamagedMark(t *testing.T) {
	m := opened(t, t.TempDir())
	task := stream.Hash{1}
	if err := m.Claim(task, 12); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(m.path(task))
	if err != nil {
		t.Fatal(err)
	}
	damaged := [][]byte{[]byte(encode(stream.Hash{2}, 12)), []byte("0" + string(good)), append([]byte(" "), good...), append(good[:len(good):len(good)], '\n')}
	for i := range good {
		for bit := range 8 {
			b := append([]byte(nil), good...)
			b[i] ^= 1 << bit
			damaged = append(damaged, b)
		}
		damaged = append(damaged, good[:i])
	}
	for _, b := range damaged {
		if err := os.WriteFile(m.path(task), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := m.Claimed(task); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("%q is read as %d, %v", b, got, err)
		}
		if err := m.Claim(task, 13); err == nil {
			t.Errorf("over %q a mark is written", b)
		}
	}
	t.Logf("%d damaged files", len(damaged))
}

// TestOpenRefuses where no mark could be written.
func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", file, filepath.Join(file, "below")} {
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "folder of marks") {
			t.Errorf("Open(%q): %v", dir, err)
		}
	}
}
