package source

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/panlearn/panlearn/learner/task"
)

// A Reader yields the rows of one file or stream, or of several files one after the other. It is not safe for
// concurrent use.
type Reader struct {
	opened *opened
	files  []input // that have not been opened
	schema task.Schema

	row    task.Row // read last
	peeked []peek   // read ahead by fitting alone, and not handed out yet
	err    error    // ends the reading
}

// rows reads the rows of one format. next overwrites row except for Number and File and returns nil, a
// *task.RowError, io.EOF or a fatal error; Key and User are set with a *task.RowError too. close releases what
// the format holds beside its stream.
type rows interface {
	next(row *task.Row) error
	close() error
}

// A formatReader is a row of the table of readers.
type formatReader struct {
	// read begins to read rows of a stream that is decompressed; of labels, if they are apart and wanted.
	read  func(events, labels io.Reader, schema task.Schema) (rows, error)
	apart bool // labels are in a file of their own
	whole bool // read gets the file itself, which is no stream
}

// readers is the table of readers: one for each format of task.Formats.
var readers = map[task.Format]formatReader{
	task.LIBSVM: {read: lined(newLIBSVM)},
	task.CSV:    {read: lined(newCSV)},
	task.JSONL:  {read: lined(newJSONL)},
	task.IDX:    {read: newIDX, apart: true},
	task.Parquet: {whole: true, read: func(file, _ io.Reader, schema task.Schema) (rows, error) {
		return newParquet(file, schema)
	}},
}

// lined returns the reader of a format whose rows are lines.
func lined(read func(*lines, task.Schema) (rows, error)) func(events, _ io.Reader, schema task.Schema) (rows, error) {
	return func(events, _ io.Reader, schema task.Schema) (rows, error) {
		return read(newLines(events, schema), schema)
	}
}

// A SchemaError means that data do not match the task. None of the data may be sent.
type SchemaError struct {
	Path string // as given to Open
	Err  error  // the reason, a *task.RowError where the first event is to blame
}

// Error names the data and the reason.
func (e *SchemaError) Error() string {
	return fmt.Sprintf("data %q do not match the task: %v", e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *SchemaError) Unwrap() error { return e.Err }

// New reads from r as Open does from a file. It is for formats of one stream, which idx and parquet are not.
func New(r io.Reader, m *task.FeatureMap) (*Reader, error) {
	const path = "-"
	if readers[m.Schema().Events.Format].whole {
		return nil, &SchemaError{Path: path, Err: errNotFile}
	}
	stream, err := inflate(r)
	if err != nil {
		return nil, readError(path, err)
	}
	rows, err := matching(path)(newRows(stream, m.Schema()))
	if err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	return &Reader{opened: &opened{path: path, rows: rows, close: stream.Close}}, nil
}

// newRows reads rows of one stream.
func newRows(stream io.Reader, schema task.Schema) (rows, error) {
	f := readers[schema.Events.Format]
	if f.read == nil || f.apart || f.whole {
		return nil, fmt.Errorf("format %s cannot be read from one stream", schema.Events.Format)
	}
	return f.read(stream, nil, schema)
}

// Next returns the next row as soon as it is there. On a *task.RowError the row has its File, Line, Number, Key and
// User, and reading can go on; io.EOF is the end; every other error is final.
func (r *Reader) Next() (task.Row, error) {
	if len(r.peeked) > 0 {
		next := r.peeked[0]
		r.peeked = r.peeked[1:]
		return next.row, next.err
	}
	return r.read()
}

func (r *Reader) read() (task.Row, error) {
	if r.err != nil {
		return task.Row{}, r.err
	}
	r.row.Label, r.row.Key, r.row.User = "", "", ""
	bad, err := r.step()
	if err != nil {
		r.err = err
		return task.Row{}, err
	}
	if r.row.File = r.opened.file; bad != nil {
		bad.File = r.row.File
		return task.Row{Line: bad.Line, Number: bad.Line - 1, File: r.row.File, Key: r.row.Key, User: r.row.User}, bad
	}
	r.row.Number = r.row.Line - 1
	return r.row, nil
}

// step reads into row, or returns a RowError if the next row is no event. Another error is final.
func (r *Reader) step() (*task.RowError, error) {
	for {
		err := r.opened.rows.next(&r.row)
		var bad *task.RowError
		switch {
		case errors.As(err, &bad):
			return bad, nil
		case err != nil && err != io.EOF:
			return nil, fmt.Errorf("read data %q: %w", r.opened.path, err)
		case err == nil || len(r.files) == 0:
			return nil, err
		}
		if err := r.advance(); err != nil {
			return nil, err
		}
	}
}

// advance goes on with the next file, whose rows are numbered from its own beginning.
func (r *Reader) advance() error {
	next, err := r.files[0].open(r.schema)
	if err != nil {
		return err
	}
	err = r.opened.close()
	r.opened, r.files = next, r.files[1:]
	return err
}

// Unknown returns the declared columns whose key no event had so far: most likely mistyped names. Only jsonl,
// which names the fields in every event, has some.
func (r *Reader) Unknown() []string {
	if f, ok := r.opened.rows.(interface{ unknown() []string }); ok {
		return f.unknown()
	}
	return nil
}

// All yields what Next returns, up to the end of the data or the first error that is not a *task.RowError, which it
// yields last.
func (r *Reader) All() iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		for {
			row, err := r.Next()
			var bad *task.RowError
			if err == io.EOF || !yield(row, err) || (err != nil && !errors.As(err, &bad)) {
				return
			}
		}
	}
}

// Close releases the file. Standard input is left open.
func (r *Reader) Close() error { return r.opened.close() }
