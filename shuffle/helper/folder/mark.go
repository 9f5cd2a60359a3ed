package folder

import (
	"bytes"
	"crypto/sha256"

	"github.com/panlearn/panlearn/shuffle/roster"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/stream"
)

const (
	rosterTitle = "panlearn helper identity v1\n"
	markTitle   = "panlearn helper mark v1\n"
)

// A mark is the content of a mark file.
type mark struct {
	folder roster.ID
	own    roster.ID
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
	x, err := split.Decode[split.Attempt](rest[:attempt])
	if m.X = x; len(rest) > attempt+sha256.Size {
		m.Signed = rest[attempt : len(rest)-sha256.Size : len(rest)-sha256.Size]
	}
	none := x == split.Attempt{}
	return m, err == nil && bytes.Equal(m.encode(), data) && none == (len(m.Signed) == 0) && (none || x.Task == m.task)
}
