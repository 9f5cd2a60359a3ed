package source

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/panlearn/panlearn/learner/task"
)

// Open opens data for the task of the feature map and checks them against it. path is a file, or "-" for standard
// input; for idx it is two files, "images,labels". Files may be gzip, whatever their name. The error is a *SchemaError where the data do not
// match the task.
func Open(path string, m *task.FeatureMap) (*Reader, error) {
	if m.Schema().Events.Format == task.IDX {
		return openIDX(path, m)
	}
	in, err := openFile(path)
	if err != nil {
		return nil, fmt.Errorf("open data: %w", err)
	}
	return newReader(path, in, m)
}

func openFile(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	return os.Open(path)
}

// inflate sees gzip by its magic number and decompresses as it reads.
func inflate(in io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(in, 64<<10)
	magic, err := b.Peek(2)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(magic) < 2 || magic[0] != 0x1f || magic[1] != 0x8b {
		return b, nil
	}
	return gzip.NewReader(b)
}

func openIDX(path string, m *task.FeatureMap) (*Reader, error) {
	images, labels, ok := strings.Cut(path, ",")
	if !ok {
		return nil, fmt.Errorf("open data %q: want two files for idx: images,labels", path)
	}
	a, err := openFile(images)
	if err != nil {
		return nil, fmt.Errorf("open images: %w", err)
	}
	b, err := openFile(labels)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open labels: %w", err), a.Close())
	}
	rows, err := inflateIDX(a, b, m.Schema().Dimension)
	return start(path, rows, err, func() error { return errors.Join(a.Close(), b.Close()) }, m)
}

func inflateIDX(a, b io.Reader, dimension int) (rows, error) {
	images, err := inflate(a)
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	labels, err := inflate(b)
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	return newIDX(images, labels, dimension)
}
