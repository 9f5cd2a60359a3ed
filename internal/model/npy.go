package model

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// The .npy format, version 1.0 (NumPy Enhancement Proposal 1): magic, version, length of the header in two bytes, the header as a
// Python dictionary padded with blanks so that the data begin at a multiple of 64, and the data, here little-endian float64 in C order.
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
