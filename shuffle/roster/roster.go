package roster

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/panlearn/panlearn/internal/disk"
	"github.com/panlearn/panlearn/stream"
)

// An ID distinguishes a file from every other file and their copies. It is drawn when the file is first made.
type ID [16]byte

// NewID draws an id from the operating system's generator.
func NewID() (out ID) {
	_, _ = rand.Read(out[:]) // never fails
	return out
}

// A Roster is the content of the file of a folder that lists what belongs together.
type Roster struct {
	Folder ID
	Key    ed25519.PublicKey
	Tasks  map[stream.Hash]ID // of each task ever worked on, the id of its marks
	// Place is the place of the key's file when the folder was made, which a copy does not share; zero: not known.
	Place disk.Place
	// Processes lists those that ever acted in the identity's name from this folder, oldest first.
	Processes []ID
}

// New returns the roster of a new folder, of a key that was just drawn.
func New(key ed25519.PublicKey) Roster { return Roster{Folder: NewID(), Key: key} }

// With returns a copy of the roster that lists a task's marks besides.
func (r Roster) With(task stream.Hash, marks ID) Roster {
	tasks := map[stream.Hash]ID{}
	maps.Copy(tasks, r.Tasks)
	tasks[task] = marks
	r.Tasks = tasks
	return r
}

// By returns a copy of the roster that lists a process besides.
func (r Roster) By(process ID) Roster {
	if !r.Knows(process) {
		r.Processes = append(slices.Clip(r.Processes), process)
	}
	return r
}

// Knows reports whether a process acted from this folder.
func (r Roster) Knows(process ID) bool { return slices.Contains(r.Processes, process) }

// Encode returns lines: the title, which ends in a line feed; the folder's id and the public key in hexadecimal; the
// key's place, in decimal, where it is known; of each task, ascending, its hash and the id of its marks; the processes;
// and the SHA-256 of the lines before.
func (r Roster) Encode(title string) []byte {
	var out bytes.Buffer
	out.WriteString(title)
	out.WriteString("folder " + hex.EncodeToString(r.Folder[:]) + "\n")
	out.WriteString("key " + hex.EncodeToString(r.Key) + "\n")
	if r.Place != (disk.Place{}) {
		fmt.Fprintf(&out, "place %d %d\n", r.Place.Number, r.Place.Born)
	}
	for _, task := range slices.SortedFunc(maps.Keys(r.Tasks), func(a, b stream.Hash) int { return bytes.Compare(a[:], b[:]) }) {
		marks := r.Tasks[task]
		out.WriteString("task " + hex.EncodeToString(task[:]) + " " + hex.EncodeToString(marks[:]) + "\n")
	}
	for _, process := range r.Processes {
		out.WriteString("process " + hex.EncodeToString(process[:]) + "\n")
	}
	sum := sha256.Sum256(out.Bytes())
	out.WriteString("sum " + hex.EncodeToString(sum[:]) + "\n")
	return out.Bytes()
}

// Decode reads nothing that Encode would not write under the same title.
func Decode(title string, data []byte) (Roster, bool) {
	r := Roster{Tasks: map[stream.Hash]ID{}}
	for line := range strings.SplitSeq(string(data), "\n") {
		words := strings.Split(line, " ")
		var values [2][]byte
		for i, word := range words[1:min(len(words), 3)] {
			values[i], _ = hex.DecodeString(word)
		}
		switch first := values[0]; {
		case words[0] == "folder" && len(first) == len(r.Folder):
			r.Folder = ID(first)
		case words[0] == "key" && len(first) == ed25519.PublicKeySize:
			r.Key = first
		case words[0] == "task" && len(first) == stream.HashSize && len(values[1]) == len(ID{}):
			r.Tasks[stream.Hash(first)] = ID(values[1])
		case words[0] == "process" && len(first) == len(ID{}):
			r.Processes = append(r.Processes, ID(first))
		case words[0] == "place" && len(words) == 3:
			r.Place.Number, _ = strconv.ParseUint(words[1], 10, 64)
			r.Place.Born, _ = strconv.ParseUint(words[2], 10, 64)
		}
	}
	return r, bytes.Equal(r.Encode(title), data)
}
