package scorer

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"

	"golang.org/x/sync/semaphore"

	"github.com/panlearn/panlearn/internal/httpaccess"
	"github.com/panlearn/panlearn/learner/task/source"
)

// A room is maxRoom bytes for all bodies and responses. The first smallShare bytes of each request come from a part of
// their own, so that large requests keep no small one out.
type room struct{ small, large *semaphore.Weighted }

const (
	smallShare = 64 << 10
	smallRoom  = maxRoom / 4
)

func newRoom() room {
	return room{semaphore.NewWeighted(smallRoom), semaphore.NewWeighted(maxRoom - smallRoom)}
}

// A share is the room that one request has taken for its body and its answer, in bytes. It takes as they grow, so that a
// length which is only announced takes none.
type share struct {
	of   room
	held int64
}

var errNoRoom = &refusal{http.StatusServiceUnavailable, "other requests have all the room for bodies and answers: come again"}

// upTo takes room for so many bytes in all.
func (s *share) upTo(bytes int) error {
	want := max(s.held, int64(bytes))
	small, large := parts(want)
	hasSmall, hasLarge := parts(s.held)
	if !s.of.small.TryAcquire(small - hasSmall) {
		return errNoRoom
	}
	if !s.of.large.TryAcquire(large - hasLarge) {
		s.of.small.Release(small - hasSmall)
		return errNoRoom
	}
	s.held = want
	return nil
}

// parts returns what of a share is of the small part of the room, and what of the large one.
func parts(bytes int64) (small, large int64) {
	small = min(bytes, smallShare)
	return small, bytes - small
}

// release gives all of it back.
func (s *share) release() {
	small, large := parts(s.held)
	s.of.small.Release(small)
	s.of.large.Release(large)
}

// firstRoom is the room that a body takes before its first byte has come.
const firstRoom = 4 << 10

// body reads a body of at most maxBody bytes. It refuses one that is packed, by its header or by how it begins: what it
// unpacks to has no bound.
func (s *share) body(q *http.Request) ([]byte, error) {
	if httpaccess.Packed(q) {
		return nil, errPacked
	}
	if q.ContentLength > maxBody {
		return nil, errLarge
	}
	var text []byte
	for {
		if len(text) == cap(text) {
			size := min(max(firstRoom, 2*cap(text)), maxBody+1)
			if err := s.upTo(size); err != nil {
				return nil, err
			}
			text = append(make([]byte, 0, size), text...)
		}
		n, err := q.Body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case len(text) > maxBody:
			return nil, errLarge
		case err == io.EOF && source.Packed(text):
			return nil, errPacked
		case err == io.EOF && len(bytes.TrimSpace(text)) == 0:
			return nil, refusef(http.StatusBadRequest, "the body has no event")
		case err == io.EOF:
			return text, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, refusef(http.StatusRequestTimeout, "the body did not come within %v", slowest)
		case err != nil:
			return nil, refusef(http.StatusBadRequest, "the body breaks off")
		}
	}
}

var (
	errPacked = &refusal{http.StatusUnsupportedMediaType, "the body is packed: send it as it is, without a Content-Encoding"}
	errLarge  = refusef(http.StatusRequestEntityTooLarge, "a body has at most %d bytes", maxBody)
)

// An answer collects the lines of predictions, of which no prediction has one within.
type answer struct {
	shape   shape
	share   *share
	before  int // bytes of the body
	text    []byte
	waiting bool // the end of a line, which what comes next decides
}

var errLong = refusef(http.StatusRequestEntityTooLarge, "an answer has at most %d bytes: post fewer events", maxAnswer)

// Write takes lines.
func (a *answer) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if err := a.grow(len(line) + 3); err != nil {
			return 0, err
		}
		switch {
		case a.shape == list && len(a.text) == 0:
			a.text = append(a.text, '[')
		case a.shape == list && a.waiting:
			a.text = append(a.text, ",\n"...)
		case a.waiting:
			a.text = append(a.text, '\n')
		}
		text, ended := bytes.CutSuffix(line, []byte("\n"))
		a.text, a.waiting = append(a.text, text...), ended
	}
	return len(p), nil
}

// grow makes room for more bytes.
func (a *answer) grow(more int) error {
	if len(a.text)+more <= cap(a.text) {
		return nil
	}
	size := max(firstRoom, 2*cap(a.text), len(a.text)+more)
	if size > maxAnswer {
		if size = len(a.text) + more; size > maxAnswer {
			return errLong
		}
		size = maxAnswer
	}
	if err := a.share.upTo(a.before + size); err != nil {
		return err
	}
	a.text = append(make([]byte, 0, size), a.text...)
	return nil
}

// end closes a list, and the last line of all but a single prediction.
func (a *answer) end() error {
	if err := a.grow(3); err != nil {
		return err
	}
	switch {
	case a.shape == list && len(a.text) == 0:
		a.text = append(a.text, "[]\n"...)
	case a.shape == list:
		a.text = append(a.text, "]\n"...)
	case a.shape == lines && a.waiting:
		a.text = append(a.text, '\n')
	}
	return nil
}
