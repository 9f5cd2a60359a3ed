package markfile

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
)

var _ stage.Marks = (*Marks)(nil)

func opened(t *testing.T, dir string) *Marks {
	t.Helper()
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func wantClaimed(t *testing.T, m *Marks, task stream.Hash, want stream.Round) {
	t.Helper()
	if got, err := m.Claimed(task); err != nil || got != want {
		t.Errorf("claimed: %d, %v, want %d", got, err, want)
	}
}

func wantOurs(t *testing.T, m *Marks, round stream.Round, who byte, want bool) {
	t.Helper()
	if got, err := m.Claim(stream.Hash{1}, round, id(who)); err != nil || got != want {
		t.Errorf("claim of round %d by %d: ours %t, %v, want %t", round, who, got, err, want)
	}
}

func id(who byte) [stream.InstanceSize]byte { return [stream.InstanceSize]byte{who} }

// TestMarksStay across handles, per task, never fall, and are of one process each.
func TestMarksStay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	one, two := stream.Hash{1}, stream.Hash{2}
	m := opened(t, dir)
	wantClaimed(t, m, one, 0)
	const last = 1<<64 - 1
	for _, step := range []struct {
		claim stream.Round
		who   byte
		ours  bool
		want  stream.Round
	}{
		{1, 1, true, 1}, {1, 1, true, 1}, {1, 2, false, 1}, {1, 0, false, 1}, {2, 2, true, 2}, {2, 1, false, 2},
		{2, 2, true, 2},
		{1, 1, false, 2}, {1, 2, false, 2}, {7, 2, true, 7}, {last, 0, true, last}, {last, 0, true, last},
		{last, 1, false, last}, {3, 0, false, last},
	} {
		wantOurs(t, m, step.claim, step.who, step.ours)
		wantClaimed(t, m, one, step.want)
		wantClaimed(t, opened(t, dir), one, step.want)
	}
	wantClaimed(t, m, two, 0)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v, want mode 0700", info.Mode(), err)
	}
}

// TestConcurrentWriters: processes with handles of their own claim the same rounds in orders of their own. Each round
// is given to one of them at most, no mark falls, the highest stays, and no temporary file.
func TestConcurrentWriters(t *testing.T) {
	const writers, rounds = 8, 25
	dir, task := t.TempDir(), stream.Hash{1}
	var mu sync.Mutex
	owner := map[stream.Round]byte{}
	var group sync.WaitGroup
	for who := byte(1); who <= writers; who++ {
		m := opened(t, dir)
		group.Go(func() {
			var seen stream.Round
			for i := range stream.Round(rounds) {
				round := i + 1
				if who%2 == 0 {
					round = rounds - i
				}
				ours, err := m.Claim(task, round, id(who))
				standing, err2 := m.Claimed(task)
				if err != nil || err2 != nil || standing < seen || standing < round {
					t.Errorf("round %d: %v, %v; the mark is %d after %d", round, err, err2, standing, seen)
				}
				seen = standing
				if !ours {
					continue
				}
				mu.Lock()
				if other := owner[round]; other != 0 {
					t.Errorf("round %d is claimed by %d and by %d", round, other, who)
				}
				owner[round] = who
				mu.Unlock()
			}
		})
	}
	group.Wait()
	wantClaimed(t, opened(t, dir), task, rounds)
	if owner[rounds] == 0 {
		t.Error("the highest round is nobody's")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v: want a mark and its lock", entries, err)
	}
}

// TestDeathWhileMarking leaves a temporary file, whole or torn: the old mark holds, and the next mark is written.
func TestDeathWhileMarking(t *testing.T) {
	for _, torn := range []string{"", "9", mark{round: 9}.encode(stream.Hash{1})} {
		for _, name := range []string{"", ".1"} {
			dir := t.TempDir()
			m := opened(t, dir)
			wantOurs(t, m, 4, 1, true)
			if err := os.WriteFile(m.path(stream.Hash{1})+name+".new", []byte(torn), 0o600); err != nil {
				t.Fatal(err)
			}
			wantClaimed(t, opened(t, dir), stream.Hash{1}, 4)
			wantOurs(t, m, 5, 1, true)
			wantClaimed(t, m, stream.Hash{1}, 5)
		}
	}
}

// TestDamagedMark: every flipped bit, every cut, another task's mark: an error, and no lower mark, also for Claim.
func TestDamagedMark(t *testing.T) {
	m := opened(t, t.TempDir())
	task := stream.Hash{1}
	count := 0
	for _, whole := range []mark{{round: 12}, {round: 12, instance: id(9)}} {
		good := []byte(whole.encode(task))
		damaged := [][]byte{[]byte(whole.encode(stream.Hash{2})), []byte("0" + string(good)), append([]byte(" "), good...),
			append(good[:len(good):len(good)], '\n')}
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
			if ours, err := m.Claim(task, 13, whole.instance); err == nil || ours {
				t.Errorf("over %q a mark is written", b)
			}
		}
		count += len(damaged)
	}
	t.Logf("%d damaged files", count)
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

// A mark that was claimed is on the disk when Claim returns: the file is synced before it has its name, and the
// folder after. Power that is lost then has nobody release a round again.
func TestMarksAreDurable(t *testing.T) {
	m := opened(t, t.TempDir())
	task := stream.Hash{1}
	var done []string
	m.fs.File = func(f *os.File) error {
		data, err := os.ReadFile(f.Name())
		if _, named := os.Stat(m.path(task)); err != nil || len(data) == 0 || named == nil {
			t.Errorf("synced %d bytes of %s, which has its name already: %v", len(data), f.Name(), named == nil)
		}
		done = append(done, "file")
		return f.Sync()
	}
	m.fs.Folder = func(string) error {
		if _, err := os.Stat(m.path(task)); err != nil {
			t.Errorf("the folder is synced before the mark is there: %v", err)
		}
		done = append(done, "folder")
		return nil
	}
	wantOurs(t, m, 1, 1, true)
	if got := strings.Join(done, ", "); got != "file, folder" {
		t.Errorf("a new mark syncs %q, want file, folder", got)
	}
	done = nil
	wantOurs(t, m, 1, 1, true)
	if got := strings.Join(done, ", "); got != "folder" {
		t.Errorf("a mark that stands syncs %q, want folder", got)
	}
}
