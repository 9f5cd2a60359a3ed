package source

import (
	"encoding/binary"
	"fmt"
	"io"
	"strconv"

	"github.com/panlearn/panlearn/learner/task"
)

// idx reads the container of MNIST, big-endian: images are 0x00000803, count, rows, columns, then one byte a pixel;
// labels are 0x00000801, count, then one byte each.
type idx struct {
	images, labels io.Reader // no labels where none are wanted
	count, at      uint32
	pixels         []byte
	value          []float64
}

func newIDX(images, labels io.Reader, schema task.Schema) (rows, error) {
	dimension := schema.Dimension
	var head [4]uint32
	if err := binary.Read(images, binary.BigEndian, &head); err != nil {
		return nil, fmt.Errorf("images: header: %w", err)
	}
	if head[0] != 0x803 {
		return nil, fmt.Errorf("images: magic number %#08x, want 0x00000803", head[0])
	}
	if uint64(head[2])*uint64(head[3]) != uint64(dimension) {
		return nil, fmt.Errorf("images: %d x %d pixels, want features.vector.dimension = %d", head[2], head[3], dimension)
	}
	count := head[1]
	if labels != nil {
		if err := validateIDXLabels(labels, count); err != nil {
			return nil, err
		}
	}
	return &idx{
		images: images, labels: labels, count: count,
		pixels: make([]byte, dimension), value: make([]float64, dimension),
	}, nil
}

func validateIDXLabels(labels io.Reader, count uint32) error {
	var head [2]uint32
	if err := binary.Read(labels, binary.BigEndian, &head); err != nil {
		return fmt.Errorf("labels: header: %w", err)
	}
	if head[0] != 0x801 {
		return fmt.Errorf("labels: magic number %#08x, want 0x00000801", head[0])
	}
	if head[1] != count {
		return fmt.Errorf("labels: %d for %d images", head[1], count)
	}
	return nil
}

func (f *idx) close() error { return nil }

func (f *idx) next(row *task.Row) error {
	if f.at == f.count {
		return io.EOF
	}
	if _, err := io.ReadFull(f.images, f.pixels); err != nil {
		return fmt.Errorf("image %d of %d: %w", f.at+1, f.count, noEOF(err))
	}
	if f.labels != nil {
		var label [1]byte
		if _, err := io.ReadFull(f.labels, label[:]); err != nil {
			return fmt.Errorf("label %d of %d: %w", f.at+1, f.count, noEOF(err))
		}
		row.Label = strconv.Itoa(int(label[0]))
	}
	f.at++
	for i, p := range f.pixels {
		f.value[i] = float64(p)
	}
	row.Line, row.Index, row.Value = int64(f.at), nil, f.value
	return nil
}

// noEOF turns the end of a file that should have gone on into an error that is not io.EOF.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
