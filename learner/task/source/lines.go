package source

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/panlearn/panlearn/learner/task"
)

// lines yields the lines that are events, numbered as in the data, each at most limit bytes.
type lines struct {
	in    *bufio.Reader
	limit int
	skip  [][]byte
	line  int64  // number of the last line that was read
	buf   []byte // of the last line, reused
}

func newLines(in io.Reader, e task.Events) *lines {
	l := &lines{in: bufio.NewReaderSize(in, 64<<10), limit: e.MaxLine}
	for _, p := range e.Skip {
		l.skip = append(l.skip, []byte(p))
	}
	return l
}

// next returns the next line without its end, passing over blank and skipped ones. A line that is too long is a
// *task.RowError, and is read to its end.
func (l *lines) next() ([]byte, error) {
	for {
		long, err := l.read()
		if err != nil {
			return nil, err
		}
		text := bytes.TrimSpace(l.buf)
		if len(text) == 0 || l.skipped() {
			continue
		}
		if long {
			return nil, l.fail("", fmt.Sprintf("longer than events.max_line, %d bytes", l.limit))
		}
		return l.buf, nil
	}
}

// read fills buf with one line, or the beginning of one that is too long.
func (l *lines) read() (long bool, err error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		ended := err == nil
		if err == io.EOF && len(l.buf)+len(part) > 0 {
			ended = true // the last line has no end
		} else if err == io.EOF {
			return false, err
		} else if err != nil && err != bufio.ErrBufferFull {
			return false, fmt.Errorf("after line %d: %w", l.line, err)
		}
		room := l.limit + 2 - len(l.buf) // 2 for the end of the line
		if len(part) > room {
			part, long = part[:room], true
		}
		l.buf = append(l.buf, part...)
		if ended {
			break
		}
	}
	l.line++
	if l.line == 1 {
		l.buf = bytes.TrimPrefix(l.buf, []byte("\xef\xbb\xbf"))
	}
	if !long {
		l.buf = bytes.TrimSuffix(bytes.TrimSuffix(l.buf, []byte("\n")), []byte("\r"))
	}
	return long || len(l.buf) > l.limit, nil
}

func (l *lines) skipped() bool {
	for _, p := range l.skip {
		if bytes.HasPrefix(l.buf, p) {
			return true
		}
	}
	return false
}

// fail makes the error of the last line.
func (l *lines) fail(column, reason string) error {
	return &task.RowError{Line: l.line, Column: column, Reason: reason}
}
