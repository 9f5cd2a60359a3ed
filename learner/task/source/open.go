package source

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/panlearn/panlearn/learner/task"
)

// Open opens data for the task of the feature map and checks them against it. path is a file, "-" for standard input,
// or a pattern of filepath.Match, whose files are read in lexical order as one stream. Files may be gzip or zstd,
// whatever their name; Parquet may not, and does not come from standard input. For idx, path is "images,labels", or
// names the images alone if the labels lie beside them under the name that MNIST gives them. The error is a
// *SchemaError if the header of the data does not match the task; no row is read. If the map is Unlabelled, labels may
// be missing, and the label file of idx is not read.
func Open(path string, m *task.FeatureMap) (*Reader, error) {
	return openData(path, m.Schema())
}

func openData(path string, schema task.Schema) (*Reader, error) {
	files, err := expand(path, schema)
	if err != nil {
		return nil, err
	}
	for _, f := range files[1:] { // a file that does not match must stop us before a row of another is sent
		opened, err := f.open(schema)
		if err != nil {
			return nil, err
		}
		if err := opened.close(); err != nil {
			return nil, err
		}
	}
	first, err := files[0].open(schema)
	if err != nil {
		return nil, err
	}
	return &Reader{opened: first, files: files[1:], schema: schema}, nil
}

// An input is a file that can be opened; for idx, two.
type input struct {
	path, labels string
	file         string // absolute path, where it is one of a pattern
}

// opened is an input that is being read.
type opened struct {
	path  string // as it was asked for
	rows  rows
	file  string
	close func() error
}

// expand finds the files of a path.
func expand(path string, schema task.Schema) ([]input, error) {
	apart := readers[schema.Events.Format].apart
	if path == "-" {
		if apart && !schema.Unlabelled {
			return nil, &SchemaError{Path: path,
				Err: fmt.Errorf("%s with labels is two files, images,labels, and no stream", schema.Events.Format)}
		}
		return []input{{path: path}}, nil
	}
	if images, labels, ok := strings.Cut(path, ","); ok && apart {
		return []input{{path: images, labels: labels}}, nil
	}
	if _, err := os.Stat(path); err == nil || !strings.ContainsAny(path, "*?[") {
		labels, err := labelsOf(path, schema)
		return []input{{path: path, labels: labels}}, err
	}
	names, err := filepath.Glob(path)
	if err != nil {
		return nil, fmt.Errorf("open data: pattern %q: %w", path, err)
	}
	slices.Sort(names)
	if schema.Events.Key == "" && schema.User == "" { // else it is known that rows are the same
		if err := validateLinks(names); err != nil {
			return nil, &SchemaError{Path: path, Err: err}
		}
	}
	var out []input
	for _, name := range names {
		if apart && strings.Contains(filepath.Base(name), "labels") {
			continue // it comes with its images
		}
		labels, err := labelsOf(name, schema)
		if err != nil {
			return nil, err
		}
		file, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		out = append(out, input{path: name, labels: labels, file: file})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("open data: pattern %q: %w", path, fs.ErrNotExist)
	}
	return out, nil
}

// validateLinks refuses names that lead to one file, such as a link to the newest of them: its rows would be there once
// for each name.
func validateLinks(names []string) error {
	files := make([]os.FileInfo, len(names))
	for i, name := range names {
		var err error
		if files[i], err = os.Stat(name); err != nil {
			return err
		}
		for k, other := range files[:i] {
			if os.SameFile(other, files[i]) {
				return fmt.Errorf("%s and %s are one file: its rows would be there twice", names[k], name)
			}
		}
	}
	return nil
}

// Files reports whether a path names nothing but files, which can be read again. Standard input, pipes and
// devices are read once.
func Files(path string, spec *task.Spec) (bool, error) {
	if path == "-" {
		return false, nil
	}
	m, err := spec.Compile()
	if err != nil {
		return false, err
	}
	inputs, err := expand(path, m.Schema())
	for _, in := range inputs {
		for _, name := range []string{in.path, in.labels} {
			if info, err := os.Stat(name); name != "" && (err != nil || !info.Mode().IsRegular()) {
				return false, err
			}
		}
	}
	return err == nil, err
}

// labelsOf names the file of labels that belongs to a file of images: train-images-idx3-ubyte to
// train-labels-idx1-ubyte.
func labelsOf(path string, schema task.Schema) (string, error) {
	if !readers[schema.Events.Format].apart || schema.Unlabelled {
		return "", nil
	}
	folder, name := filepath.Split(path)
	if !strings.Contains(name, "images") {
		return "", &SchemaError{Path: path,
			Err: fmt.Errorf("for %s, name two files, images,labels, or a file with \"images\" in its name",
				schema.Events.Format)}
	}
	name = strings.Replace(name, "images", "labels", 1)
	return folder + strings.Replace(name, "idx3", "idx1", 1), nil
}

// open opens an input and checks what can be checked without its rows.
func (i input) open(schema task.Schema) (*opened, error) {
	in, err := openFile(i.path)
	if err != nil {
		return nil, fmt.Errorf("open data: %w", err)
	}
	closers := []func() error{in.Close}
	closeAll := func() (err error) {
		for _, c := range slices.Backward(closers) {
			err = errors.Join(err, c())
		}
		return err
	}
	stream := func(in io.Reader) (io.Reader, error) {
		s, err := inflate(in)
		if err != nil {
			return nil, readError(i.path, err)
		}
		closers = append(closers, s.Close)
		return s, nil
	}
	rows, err := func() (rows, error) {
		f := readers[schema.Events.Format]
		if f.whole {
			return matching(i.path)(f.read(in, nil, schema))
		}
		events, err := stream(in)
		if err != nil {
			return nil, err
		}
		if !f.apart || schema.Unlabelled {
			return matching(i.path)(f.read(events, nil, schema))
		}
		marks, err := openFile(i.labels)
		if err != nil {
			return nil, fmt.Errorf("open labels: %w", err)
		}
		closers = append(closers, marks.Close)
		labels, err := stream(marks)
		if err != nil {
			return nil, err
		}
		return matching(i.path)(f.read(events, labels, schema))
	}()
	if err != nil {
		return nil, errors.Join(err, closeAll())
	}
	return &opened{path: i.path, rows: rows, file: i.file, close: func() error {
		return errors.Join(rows.close(),
			closeAll())
	}}, nil
}

// readError returns an error for data that could not be read, or that are of another format than the task's.
func readError(path string, err error) error {
	if errors.Is(err, errIsParquet) {
		return &SchemaError{Path: path, Err: err}
	}
	return fmt.Errorf("read data %q: %w", path, err)
}

// matching makes what a format does not accept into a SchemaError.
func matching(path string) func(rows, error) (rows, error) {
	return func(r rows, err error) (rows, error) {
		if err != nil {
			return nil, &SchemaError{Path: path, Err: err}
		}
		return r, nil
	}
}

func openFile(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(path)
}

// mostWindow bounds the memory of a zstd stream: what zstd itself reads without being told more.
const mostWindow = 128 << 20

// Whole files are recognised by their first bytes, which also works for standard input.
var (
	gzipMagic    = []byte{0x1f, 0x8b}
	zstdMagic    = []byte{0x28, 0xb5, 0x2f, 0xfd}
	parquetMagic = []byte("PAR1\x15") // and the beginning of a page, which no line has
)

var errIsParquet = errors.New("it is a Parquet file: say so by events.format or --format")

// begins reads ahead as long as a magic number may come, which has no end of a line in it: no row of a stream waits for
// another.
func begins(b *bufio.Reader) (magic []byte, err error) {
	for {
		magic, err = b.Peek(len(magic) + 1)
		may := false
		for _, m := range [][]byte{gzipMagic, zstdMagic, parquetMagic} {
			may = may || len(magic) < len(m) && bytes.HasPrefix(m, magic)
		}
		if err == io.EOF {
			return magic, nil
		}
		if err != nil || !may {
			return magic, err
		}
	}
}

// Packed reports whether data begin as those do that New and Open decompress: as gzip or zstd.
func Packed(begin []byte) bool {
	return bytes.HasPrefix(begin, gzipMagic) || bytes.HasPrefix(begin, zstdMagic)
}

// inflate decompresses gzip and zstd as it reads. Close does not close in.
func inflate(in io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(in, 64<<10)
	magic, err := begins(b)
	if err != nil {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, gzipMagic):
		return gzip.NewReader(b)
	case bytes.HasPrefix(magic, zstdMagic):
		// With one goroutine, ours, nothing is read or decompressed ahead.
		d, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case bytes.HasPrefix(magic, parquetMagic):
		return nil, errIsParquet
	}
	return io.NopCloser(b), nil
}
