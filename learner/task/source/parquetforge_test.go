package source

import (
	"bytes"
	"encoding/binary"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// forge builds files of one column, x, that no honest writer makes.
type forge struct {
	physical   format.Type
	optional   bool
	codec      format.CompressionCodec
	rows       int64 // of the only group
	pages      []byte
	chunkBytes int64                      // 0: as many as there are
	change     func(*format.FileMetaData) // of what is said
	footer     []byte                     // in place of what is said
}

func marshal(v any) []byte {
	b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil {
		panic(err)
	}
	return b
}

// page appends a data page of version 1 with a body that says it has size bytes when unpacked.
func (f forge) page(values int32, encoding format.Encoding, size int32, body []byte) forge {
	h := format.PageHeader{Type: format.DataPage, UncompressedPageSize: size, CompressedPageSize: int32(len(body))}
	h.DataPageHeader.Valid = true
	h.DataPageHeader.V = format.DataPageHeader{NumValues: values, Encoding: encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE}
	return f.add(h, body)
}

// words appends a dictionary.
func (f forge) words(values, size int32, body []byte) forge {
	h := format.PageHeader{Type: format.DictionaryPage, UncompressedPageSize: size, CompressedPageSize: int32(len(body))}
	h.DictionaryPageHeader.Valid = true
	h.DictionaryPageHeader.V = format.DictionaryPageHeader{NumValues: values, Encoding: format.Plain}
	return f.add(h, body)
}

func (f forge) add(h format.PageHeader, body []byte) forge {
	f.pages = append(append(bytes.Clone(f.pages), marshal(h)...), body...)
	return f
}

func (f forge) bytes() []byte {
	if f.chunkBytes == 0 {
		f.chunkBytes = int64(len(f.pages))
	}
	if f.footer == nil {
		leaf := format.SchemaElement{Name: "x"}
		leaf.Type.V, leaf.Type.Valid, leaf.RepetitionType.Valid = f.physical, true, true
		if f.optional {
			leaf.RepetitionType.V = format.Optional
		}
		root := format.SchemaElement{Name: "root"}
		root.NumChildren.V, root.NumChildren.Valid = 1, true
		chunk := format.ColumnChunk{MetaData: format.ColumnMetaData{
			Type: f.physical, Encoding: []format.Encoding{format.Plain}, PathInSchema: []string{"x"}, Codec: f.codec, NumValues: f.rows,
			TotalUncompressedSize: f.chunkBytes, TotalCompressedSize: f.chunkBytes, DataPageOffset: 4,
		}}
		meta := format.FileMetaData{
			Version: 1, Schema: []format.SchemaElement{root, leaf}, NumRows: f.rows,
			RowGroups: []format.RowGroup{{Columns: []format.ColumnChunk{chunk}, NumRows: f.rows}},
		}
		if f.change != nil {
			f.change(&meta)
		}
		f.footer = marshal(meta)
	}
	out := append([]byte(parquetEnd), f.pages...)
	out = append(out, f.footer...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(f.footer)))
	return append(out, parquetEnd...)
}
