package parquet

import (
	"errors"
	"io"
)

// A Reader yields the rows of a file. It is not safe for concurrent use.
type Reader struct {
	file    io.ReaderAt
	groups  []group
	cursors []cursor
	left    int64 // rows of the group that is being read
	err     error // ends the reading
}

// Open reads the footer and checks that the columns are there and have types that are read as they should be. A file of
// size bytes is read at random; nothing of it is kept but the footer.
func Open(file io.ReaderAt, size int64, columns []Column) (*Reader, error) {
	if len(columns) == 0 {
		return nil, errors.New("no columns are asked for")
	}
	f, err := readFooter(file, size, columns)
	if err != nil {
		return nil, err
	}
	r := &Reader{file: file, groups: f.groups, cursors: make([]cursor, len(columns))}
	for i := range r.cursors {
		r.cursors[i].column = f.columns[i]
	}
	return r, nil
}

// Next writes the next row's values to dst, one for each column: as a csv file would have them, empty where there is
// none. io.EOF is the end of the file; every other error is final too, and names the column.
func (r *Reader) Next(dst []string) error {
	if r.err == nil {
		r.err = r.next(dst)
	}
	return r.err
}

func (r *Reader) next(dst []string) error {
	for r.left == 0 {
		if len(r.groups) == 0 {
			return io.EOF
		}
		g := r.groups[0]
		r.groups = r.groups[1:]
		for i := range r.cursors {
			r.cursors[i].begin(r.file, g.chunks[i])
		}
		r.left = g.rows
	}
	r.left--
	for i := range r.cursors {
		var err error
		if dst[i], err = r.cursors[i].next(); err != nil {
			return err
		}
	}
	return nil
}

// Close releases memory. The file is the caller's.
func (r *Reader) Close() {
	for i := range r.cursors {
		r.cursors[i].inflater.close()
	}
}
