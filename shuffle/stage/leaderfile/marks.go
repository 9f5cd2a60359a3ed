package leaderfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/panlearn/panlearn/shuffle/roster"
	"github.com/panlearn/panlearn/shuffle/split"
	"github.com/panlearn/panlearn/shuffle/stage"
	"github.com/panlearn/panlearn/stream"
)

// domain of the check sums of marks.
const domain = "panlearn leader marks v1\x00"

// marks is the content of a task's file of marks.
type marks struct {
	folder roster.ID
	own    roster.ID
	split.LeaderMarks
}

// encode returns the folder's id, the marks' own, both attempts, and the SHA-256 of domain, task and these.
func (m marks) encode(task stream.Hash) []byte {
	body := append(append([]byte(nil), m.folder[:]...), m.own[:]...)
	body = m.Released.Append(m.Prepared.Append(body))
	sum := sha256.Sum256(append([]byte(domain+string(task[:])), body...))
	return append(body, sum[:]...)
}

// decode reads nothing that encode would not write.
func decode(task stream.Hash, data []byte) (m marks, ok bool) {
	if len(data) != len(m.encode(task)) {
		return marks{}, false
	}
	rest := data[copy(m.folder[:], data):]
	rest = rest[copy(m.own[:], rest):]
	half := (len(rest) - sha256.Size) / 2
	var err, failed error
	m.Prepared, err = split.Decode[split.Attempt](rest[:half])
	m.Released, failed = split.Decode[split.Attempt](rest[half : 2*half])
	return m, err == nil && failed == nil && string(m.encode(task)) == string(data)
}

// marks reads the marks of a task, under its lock; begun is false where the task was not begun. Errors wrap
// stage.ErrFolder where the marks and the list of the folder do not belong together.
func (f *Folder) marks(task stream.Hash) (m marks, begun bool, err error) {
	r, err := f.roster()
	if err != nil {
		return marks{}, false, err
	}
	path := f.path(task, marksSuffix)
	own, begun := r.Tasks[task]
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && begun:
		return marks{}, false, stage.Lacking(path + " is missing, and its task was begun")
	case errors.Is(err, fs.ErrNotExist):
		return marks{folder: r.Folder, own: roster.NewID()}, false, nil
	case err != nil:
		return marks{}, false, err
	}
	m, ok := decode(task, data)
	switch {
	case !ok:
		return marks{}, false, stage.Lacking(path + " is damaged, or was written by another version of panlearn, which reads it")
	case m.folder != r.Folder:
		return marks{}, false, stage.Lacking(path + " is of another folder")
	case begun && m.own != own:
		return marks{}, false, stage.Lacking(path + " is not the one that was made for its task")
	case !begun && m.LeaderMarks != (split.LeaderMarks{}):
		return marks{}, false, stage.Lacking(fmt.Sprintf("%s has an attempt, and %s is older than it", path, rosterFile))
	}
	return m, begun, nil
}
