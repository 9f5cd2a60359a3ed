package model

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The .npy format, version 1.0 (NumPy Enhancement Proposal 1): magic, version, length of the header in two bytes, the
// header as a Python dictionary padded with blanks so that the data begin at a multiple of 64, and the data, here
// little-endian float64 in C order.
const (
	npyMagic = "\x93NUMPY\x01\x00"
	npyAlign = 64
)

// appendNPY appends an array of the given shape, in row-major order; no shape is a scalar.
func appendNPY(dst []byte, data []float64, shape ...int) []byte {
	var lengths strings.Builder
	for i, n := range shape {
		if i > 0 {
			lengths.WriteByte(' ')
		}
		fmt.Fprintf(&lengths, "%d,", n)
	}
	tuple := lengths.String()
	if len(shape) > 1 {
		tuple = strings.TrimSuffix(tuple, ",") // a tuple of one needs its comma
	}
	header := "{'descr': '<f8', 'fortran_order': False, 'shape': (" + tuple + "), }"
	before := len(npyMagic) + 2
	padding := (npyAlign - (before+len(header)+1)%npyAlign) % npyAlign
	header += strings.Repeat(" ", padding) + "\n"
	dst = append(dst, npyMagic...)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(header)))
	dst = append(dst, header...)
	for _, x := range data {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
	}
	return dst
}

var npyHeader = regexp.MustCompile(`^\{'descr': '<f8', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n$`)

// parseNPY reads what appendNPY writes, which is also what NumPy writes for such arrays.
func parseNPY(file []byte) (data []float64, shape []int, err error) {
	rest, ok := bytes.CutPrefix(file, []byte(npyMagic))
	if !ok || len(rest) < 2 {
		return nil, nil, errors.New("not an array in the .npy format, version 1.0")
	}
	length := int(binary.LittleEndian.Uint16(rest))
	if rest = rest[2:]; len(rest) < length {
		return nil, nil, errors.New("the header ends early")
	}
	match := npyHeader.FindSubmatch(rest[:length])
	if match == nil {
		return nil, nil, errors.New("the header is not of an array of little-endian float64 in C order")
	}
	body := rest[length:]
	size := 1
	for text := range strings.FieldsFuncSeq(string(match[1]), func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 0 && size > len(body)/n {
			return nil, nil, errors.New("the shape is not that of the data")
		}
		shape = append(shape, n)
		size *= n
	}
	if len(body)%8 != 0 || size != len(body)/8 {
		return nil, nil, fmt.Errorf("%d bytes of data, want 8 for each of %d entries", len(body), size)
	}
	for ; len(body) > 0; body = body[8:] {
		data = append(data, math.Float64frombits(binary.LittleEndian.Uint64(body)))
	}
	return data, shape, nil
}

// Entries of the .npz container, which is a zip archive. NumPy shows the arrays without their ending.
const (
	npzWeights   = "weights.npy"
	npzIntercept = "intercept.npy"
	npzMetadata  = "metadata.json"
)

// zipMagic is the beginning of every zip archive with an entry.
const zipMagic = "PK\x03\x04"

const (
	// maxHeader bounds the bytes in front of an array's data: magic, length and header.
	maxHeader = 1<<16 + int64(len(npyMagic)) + 2
	// maxRatio bounds how much larger metadata may be than they are packed, beyond the first maxSmall bytes. NumPy
	// does not pack them at all.
	maxRatio, maxSmall = 16, 1 << 20
)

// A metadata is a snapshot without its numbers: the two fields hide Snapshot's.
type metadata struct {
	Snapshot
	Weights   *struct{} `json:"weights,omitempty"`
	Intercept *struct{} `json:"intercept,omitempty"`
}

// NumPy returns the model as a .npz container, which numpy.load opens: the arrays weights, of shape (d,) or
// (k, d), and intercept, of shape () or (k,), and the rest of the snapshot, privacy statement included, as
// metadata.json. Equal snapshots give equal bytes.
func (s Snapshot) NumPy() ([]byte, error) {
	if len(s.Weights) == 0 || len(s.Weights) != len(s.Intercept) {
		return nil, fmt.Errorf("export to NumPy: %d rows of weights and %d intercepts, want as many and at least one",
			len(s.Weights), len(s.Intercept))
	}
	shape := []int{len(s.Weights), len(s.Features)}
	for _, row := range s.Weights {
		if len(row) != len(s.Features) {
			return nil, fmt.Errorf("export to NumPy: %d weights for %d features", len(row), len(s.Features))
		}
	}
	drop := 0
	if len(s.Weights) == 1 {
		drop = 1
	}
	about, err := plainJSON(metadata{Snapshot: s}, "  ")
	if err != nil {
		return nil, fmt.Errorf("export to NumPy: %w", err)
	}
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, entry := range []struct {
		name string
		data []byte
	}{
		{npzWeights, appendNPY(nil, slices.Concat(s.Weights...), shape[drop:]...)},
		{npzIntercept, appendNPY(nil, s.Intercept, shape[drop:1]...)},
		{npzMetadata, about},
	} {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: entry.name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(entry.data)
		}
		if err != nil {
			return nil, fmt.Errorf("export to NumPy: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("export to NumPy: %w", err)
	}
	return out.Bytes(), nil
}

// JSON returns the model as `learner snapshot` prints it.
func (s Snapshot) JSON() ([]byte, error) { return plainJSON(s, "  ") }

// plainJSON leaves <, > and & as they are.
func plainJSON(v any, indent string) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// parseNumPy reads what NumPy writes.
func parseNumPy(data []byte) (Snapshot, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Snapshot{}, fmt.Errorf("model: not a snapshot in a .npz container: %w", err)
	}
	about, err := readEntry(archive, npzMetadata, min(MaxFile, maxSmall+maxRatio*int64(len(data))))
	if err != nil {
		return Snapshot{}, err
	}
	s, n, err := parseJSON(about)
	if err != nil {
		return Snapshot{}, err
	}
	weights, shape, err := readArray(archive, npzWeights, n.features*n.scores)
	if err != nil {
		return Snapshot{}, err
	}
	if s.Intercept, _, err = readArray(archive, npzIntercept, n.scores); err != nil {
		return Snapshot{}, err
	}
	s.Weights = nil
	switch len(shape) {
	case 1:
		s.Weights = Rows{weights}
	case 2:
		for i := range shape[0] {
			s.Weights = append(s.Weights, weights[i*shape[1]:(i+1)*shape[1]])
		}
	default:
		return Snapshot{}, fmt.Errorf("model: %s has %d dimensions, want 1 or 2", npzWeights, len(shape))
	}
	return s, nil
}

// readArray reads an array of at most so many numbers.
func readArray(archive *zip.Reader, name string, most int) ([]float64, []int, error) {
	file, err := readEntry(archive, name, maxHeader+8*int64(most))
	if err != nil {
		return nil, nil, err
	}
	data, shape, err := parseNPY(file)
	if err != nil {
		return nil, nil, fmt.Errorf("model: %s: %w", name, err)
	}
	return data, shape, nil
}

// readEntry unpacks an entry of at most so many bytes.
func readEntry(archive *zip.Reader, name string, most int64) ([]byte, error) {
	file, err := archive.Open(name)
	if err != nil {
		return nil, fmt.Errorf("model: no %s in the container", name)
	}
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("model: %s: %w", name, err)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("model: %s: more than the %d bytes that a model of its declaration needs", name, most)
	}
	return data, nil
}
