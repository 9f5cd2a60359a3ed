package source

import (
	"github.com/parquet-go/parquet-go/encoding/thrift"
)

// decodeThrift decodes a structure of the format that data begin with, and says how long it is.
func decodeThrift(data []byte, to any) (int, error) {
	r := &boundedThrift{BytesReader: new(thrift.CompactProtocol).NewReaderFromBytes(data), size: len(data), open: []int32{1}}
	err := thrift.NewDecoder(r).Decode(to)
	return r.BytesRead(), err
}

// boundedThrift refuses lists that are longer than what is left of the data, which the library would make room for,
// and structures in structures for ever, which would overflow its stack.
type boundedThrift struct {
	thrift.BytesReader
	size int     // of the data
	open []int32 // structures that are still to come, at each depth
}

// ReadField also counts the structures that begin and end.
func (r *boundedThrift) ReadField() (thrift.Field, error) {
	f, err := r.BytesReader.ReadField()
	switch {
	case err != nil:
	case f.Type == thrift.STRUCT:
		err = r.begin(1)
	case f.Type == thrift.STOP && len(r.open) > 0:
		r.open[len(r.open)-1]--
		for len(r.open) > 0 && r.open[len(r.open)-1] == 0 {
			r.open = r.open[:len(r.open)-1]
		}
	}
	return f, err
}

func (r *boundedThrift) begin(structures int32) error {
	if len(r.open) > mostDepth {
		return errTooBig
	}
	if structures > 0 {
		r.open = append(r.open, structures)
	}
	return nil
}

// ReadList checks the size. The format has no lists of lists, sets or maps.
func (r *boundedThrift) ReadList() (thrift.List, error) {
	l, err := r.BytesReader.ReadList()
	if err != nil {
		return l, err
	}
	switch {
	case l.Size < 0 || l.Size > mostItems || int(l.Size) > r.size-r.BytesRead():
		return l, errTooBig
	case l.Type == thrift.STRUCT:
		return l, r.begin(l.Size)
	case l.Type == thrift.LIST || l.Type == thrift.SET || l.Type == thrift.MAP:
		return l, errDamaged
	}
	return l, nil
}

// ReadSet reads what the format does not have.
func (r *boundedThrift) ReadSet() (thrift.Set, error) { return thrift.Set{}, errDamaged }

// ReadMap reads what the format does not have.
func (r *boundedThrift) ReadMap() (thrift.Map, error) { return thrift.Map{}, errDamaged }

// Discard passes over bytes; the library looks for it.
func (r *boundedThrift) Discard(n int) (int, error) {
	return r.BytesReader.(interface{ Discard(int) (int, error) }).Discard(n)
}
