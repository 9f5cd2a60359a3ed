package folder

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
)

// An id is drawn when a file is made first, so that a copy of one file beside another's is seen.
type id [16]byte

const (
	recordTitle = "panlearn helper identity v1\n"
	markTitle   = "panlearn helper mark v1\n"
)

// A record is the content of the file identity.
type record struct {
	folder id
	key    ed25519.PublicKey
	joined map[stream.Hash]id // of each task ever joined, its mark's
}

// encode returns lines: the title; the folder's id and the public key in hexadecimal; of each task, ascending, its hash
// and the id of its mark; and the SHA-256 of the lines before.
func (r record) encode() []byte {
	var out bytes.Buffer
	out.WriteString(recordTitle)
	out.WriteString("folder " + hex.EncodeToString(r.folder[:]) + "\n")
	out.WriteString("key " + hex.EncodeToString(r.key) + "\n")
	for _, task := range slices.SortedFunc(maps.Keys(r.joined), compareHashes) {
		mark := r.joined[task]
		out.WriteString("task " + hex.EncodeToString(task[:]) + " " + hex.EncodeToString(mark[:]) + "\n")
	}
	sum := sha256.Sum256(out.Bytes())
	out.WriteString("sum " + hex.EncodeToString(sum[:]) + "\n")
	return out.Bytes()
}

func compareHashes(a, b stream.Hash) int { return bytes.Compare(a[:], b[:]) }

// decodeRecord reads nothing that encode would not write.
func decodeRecord(data []byte) (record, bool) {
	r := record{joined: map[stream.Hash]id{}}
	for line := range strings.SplitSeq(string(data), "\n") {
		words := strings.Split(line, " ")
		var values [2][]byte
		for i, word := range words[1:min(len(words), 3)] {
			values[i], _ = hex.DecodeString(word)
		}
		switch first := values[0]; {
		case words[0] == "folder" && len(first) == len(r.folder):
			r.folder = id(first)
		case words[0] == "key" && len(first) == ed25519.PublicKeySize:
			r.key = first
		case words[0] == "task" && len(first) == stream.HashSize && len(values[1]) == len(id{}):
			r.joined[stream.Hash(first)] = id(values[1])
		}
	}
	return r, bytes.Equal(r.encode(), data)
}

// A mark is the content of a mark file.
type mark struct {
	folder id
	own    id
	task   stream.Hash
	split.HelperMark
}

// encode returns the title, the folder's id, the mark's id, the task hash, the attempt, the signed Share, and the
// SHA-256 of all before it.
func (m mark) encode() []byte {
	out := append([]byte(markTitle), m.folder[:]...)
	out = append(out, m.own[:]...)
	out = append(out, m.task[:]...)
	out = append(m.X.Append(out), m.Signed...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

// decodeMark reads nothing that encode would not write.
func decodeMark(data []byte) (m mark, ok bool) {
	attempt := len(split.Attempt{}.Append(nil))
	rest, ok := bytes.CutPrefix(data, []byte(markTitle))
	if !ok || len(rest) < len(m.folder)+len(m.own)+len(m.task)+attempt+sha256.Size {
		return mark{}, false
	}
	rest = rest[copy(m.folder[:], rest):]
	rest = rest[copy(m.own[:], rest):]
	rest = rest[copy(m.task[:], rest):]
	x, err := split.DecodeAttempt(rest[:attempt])
	if m.X = x; len(rest) > attempt+sha256.Size {
		m.Signed = rest[attempt : len(rest)-sha256.Size : len(rest)-sha256.Size]
	}
	none := x == split.Attempt{}
	return m, err == nil && bytes.Equal(m.encode(), data) && none == (len(m.Signed) == 0) && (none || x.Task == m.task)
}
