package parquet

import (
	"bytes"
	"encoding/binary"
)

// forge builds files that no honest writer makes.
type forge struct {
	physical   int64
	optional   bool
	codec      int64
	rows       int64 // of the only group
	pages      []byte
	chunkBytes int64 // 0: as many as there are
	footer     []byte
}

// A thrift structure: fields with long headers, then a zero.
type thrift []byte

func (t thrift) field(id int16, kind byte) thrift {
	return binary.AppendVarint(append(t, kind), int64(id))
}
func (t thrift) int(id int16, v int64) thrift { return binary.AppendVarint(t.field(id, typeI64), v) }
func (t thrift) text(id int16, s string) thrift {
	return append(binary.AppendUvarint(t.field(id, typeBinary), uint64(len(s))), s...)
}
func (t thrift) inner(id int16, inner thrift) thrift {
	return append(t.field(id, typeStruct), inner.end()...)
}
func (t thrift) list(id int16, of byte, size uint64, items ...thrift) thrift {
	t = binary.AppendUvarint(append(t.field(id, typeList), 0xf0|of), size)
	for _, i := range items {
		t = append(t, i.end()...)
	}
	return t
}
func (t thrift) end() thrift { return append(bytes.Clone(t), 0) }

// page appends a data page of version 1 with a body that says it has size bytes when unpacked.
func (f forge) page(values, encoding, size int64, body []byte) forge {
	h := thrift{}.int(1, dataPage).int(2, size).int(3, int64(len(body))).
		inner(5, thrift{}.int(1, values).int(2, encoding).int(3, encRLE).int(4, encRLE))
	f.pages = append(append(bytes.Clone(f.pages), h.end()...), body...)
	return f
}

// words appends a dictionary.
func (f forge) words(values, size int64, body []byte) forge {
	h := thrift{}.int(1, dictionaryPage).int(2, size).int(3, int64(len(body))).inner(7, thrift{}.int(1, values).int(2, encPlain))
	f.pages = append(append(bytes.Clone(f.pages), h.end()...), body...)
	return f
}

func (f forge) bytes() []byte {
	if f.chunkBytes == 0 {
		f.chunkBytes = int64(len(f.pages))
	}
	if f.footer == nil {
		repetition := int64(0)
		if f.optional {
			repetition = 1
		}
		chunk := thrift{}.inner(3, thrift{}.int(1, f.physical).int(4, f.codec).int(5, f.rows).int(7, f.chunkBytes).int(9, 4))
		f.footer = thrift{}.
			list(2, typeStruct, 2, thrift{}.text(4, "root").int(5, 1), thrift{}.int(1, f.physical).int(3, repetition).text(4, "x")).
			int(3, f.rows).
			list(4, typeStruct, 1, thrift{}.list(1, typeStruct, 1, chunk).int(3, f.rows)).end()
	}
	out := append([]byte(magic), f.pages...)
	out = append(out, f.footer...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(f.footer)))
	return append(out, magic...)
}
