package roster

import (
	"bytes"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/stream"
)

const title = "panlearn test identity v1\n"

func filled() Roster {
	r := New(bytes.Repeat([]byte{7}, 32)).With(stream.Hash{3}, ID{4}).With(stream.Hash{1}, ID{2})
	r.Place = disk.Place{Number: 12, Born: 34}
	return r.By(ID{8}).By(ID{5}).By(ID{8})
}

// TestRoster is read as it was written, lists each task once, and With changes nothing of the roster that it is asked of.
func TestRoster(t *testing.T) {
	r := filled()
	got, ok := Decode(title, r.Encode(title))
	if !ok || got.Folder != r.Folder || !got.Key.Equal(r.Key) || len(got.Tasks) != 2 || got.Tasks[stream.Hash{3}] != (ID{4}) ||
		got.Place != r.Place || !slices.Equal(got.Processes, []ID{{8}, {5}}) || !got.Knows(ID{5}) || got.Knows(ID{6}) {
		t.Errorf("read as %+v, %t", got, ok)
	}
	if again := r.With(stream.Hash{3}, ID{9}); again.Tasks[stream.Hash{3}] != (ID{9}) || r.Tasks[stream.Hash{3}] != (ID{4}) {
		t.Errorf("with other marks %v, before %v", again.Tasks, r.Tasks)
	}
	if New(r.Key).Folder == r.Folder {
		t.Error("two folders have one id")
	}
}

// TestDamagedRoster: each flipped bit, each cut, another title, lines out of order: not read.
func TestDamagedRoster(t *testing.T) {
	whole := filled().Encode(title)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	slices.Reverse(lines[3:5])
	damaged := [][]byte{bytes.Join(lines, nil), append(bytes.Clone(whole), '\n'), filled().Encode("panlearn other identity v1\n")}
	for i := range whole {
		for bit := range 8 {
			one := bytes.Clone(whole)
			one[i] ^= 1 << bit
			damaged = append(damaged, one)
		}
		damaged = append(damaged, whole[:i])
	}
	for _, data := range damaged {
		if _, ok := Decode(title, data); ok {
			t.Errorf("%q is read", data)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(filled().Encode(title))
	f.Add(New(make([]byte, 32)).Encode(title))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, ok := Decode(title, data); ok && !bytes.Equal(r.Encode(title), data) {
			t.Error("two encodings of one roster")
		}
	})
}
