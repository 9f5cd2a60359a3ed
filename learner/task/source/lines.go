package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/panlearn/panlearn/learner/task"
)

// lines yields the lines that are events, numbered as in the data, each at most limit bytes. Every line is an
// event, whatever it holds, except the first ones that the task skips and, unless blank is set, lines of no
// byte at all.
type lines struct {
	in    *bufio.Reader
	limit int
	skip  int64
	blank bool   // lines of no byte are rows, too
	line  int64  // number of the last line that was read
	buf   []byte // of the last line, reused
	// named reads the whole line, however long it is, for what names its row.
	named []naming
}

// A naming is a column that holds a row's key or its person.
type naming struct {
	keyReader
	set func(*task.Row, string)
}

func setKey(r *task.Row, name string)  { r.Key = name }
func setUser(r *task.Row, name string) { r.User = name }

// A column that names rows, and what it sets.
type namingColumn struct {
	name string
	set  func(*task.Row, string)
}

// namingColumns returns the columns of a schema that name rows.
func namingColumns(s task.Schema) (out []namingColumn) {
	if s.Events.Key != "" {
		out = append(out, namingColumn{s.Events.Key, setKey})
	}
	if s.User != "" {
		out = append(out, namingColumn{s.User, setUser})
	}
	return out
}

// A keyReader finds the key in a line that comes in parts, and needs nothing after it to be in order. Its memory is
// bounded.
type keyReader interface {
	Reset()
	Write(part []byte) (int, error) // never fails
	Key() string                    // empty: none that can be read
}

func newLines(in io.Reader, s task.Schema) *lines {
	return &lines{in: bufio.NewReaderSize(in, 64<<10), limit: s.Events.MaxLine, skip: int64(s.Events.SkipLines),
		blank: s.Blanks}
}

// header returns the first line that is neither skipped nor empty, without its end. It is no row, so that one that is
// too long is a fatal error.
func (l *lines) header() ([]byte, error) {
	blank := l.blank
	l.blank = false
	line, err := l.next()
	l.blank = blank
	var long *task.RowError
	switch {
	case err == io.EOF:
		return nil, errors.New("no header line")
	case errors.As(err, &long):
		return nil, errors.New("header: " + long.Reason)
	}
	return line, err
}

// row returns the next event's line as next does, and sets Line, Key and User.
func (l *lines) row(row *task.Row) ([]byte, error) {
	line, err := l.next()
	row.Line = l.line
	for _, n := range l.named {
		n.set(row, n.Key())
	}
	return line, err
}

// next returns the next line without its end, passing over skipped and empty ones. A line that is too long is a
// *task.RowError, and is read to its end.
func (l *lines) next() ([]byte, error) {
	for {
		long, empty, err := l.read()
		switch {
		case err != nil:
			return nil, err
		case l.line <= l.skip || empty && !l.blank:
			continue
		case empty:
			return nil, l.fail("", "an empty line")
		case long:
			return nil, l.tooLong()
		}
		return l.buf, nil
	}
}

// read fills buf with one line, or the beginning of one that is too long.
func (l *lines) read() (long, empty bool, err error) {
	l.buf = l.buf[:0]
	for _, n := range l.named {
		n.Reset()
	}
	empty = true
	for {
		part, err := l.in.ReadSlice('\n')
		ended := err == nil
		if err == io.EOF && (!empty || len(part) > 0) {
			ended = true // the last line has no end
		} else if err == io.EOF {
			return false, true, err
		} else if err != nil && err != bufio.ErrBufferFull {
			return false, false, fmt.Errorf("after line %d: %w", l.line, err)
		}
		if empty {
			empty = len(bytes.TrimSuffix(bytes.TrimSuffix(part, []byte("\n")), []byte("\r"))) == 0
			if l.line == 0 {
				part = bytes.TrimPrefix(part, []byte("\xef\xbb\xbf"))
			}
		}
		for _, n := range l.named {
			_, _ = n.Write(part)
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
	if !long {
		l.buf = bytes.TrimSuffix(bytes.TrimSuffix(l.buf, []byte("\n")), []byte("\r"))
	}
	return long || len(l.buf) > l.limit, empty, nil
}

func (l *lines) tooLong() error {
	return l.fail("", fmt.Sprintf("longer than events.max_line, %d bytes", l.limit))
}

// fail makes the error of the last line.
func (l *lines) fail(column, reason string) error {
	return &task.RowError{Line: l.line, Column: column, Reason: reason}
}
