package parquet

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Limits of a page.
const (
	mostHeader = 1 << 20
	mostPage   = 128 << 20 // bytes, before and after compression
	mostValues = 1 << 24
	mostWords  = 1 << 22 // of a dictionary
)

// The types of pages.
const (
	dataPage       = 0
	dictionaryPage = 2
	dataPageV2     = 3
)

// The encodings.
const (
	encPlain           = 0
	encPlainDictionary = 2
	encRLE             = 3
	encDeltaInts       = 5
	encDeltaLengths    = 6
	encDeltaBytes      = 7
	encDictionary      = 8
	encSplit           = 9
)

// A pageHeader is what is needed of a PageHeader.
type pageHeader struct {
	kind            int32
	size, packed    int32 // after and before decompression
	sum             uint32
	summed          bool
	values          int32
	encoding        int32
	levelEncoding   int32
	repeated, level int32 // bytes of the levels, version 2
	plain           bool  // version 2: not compressed
}

// readHeader reads a header and says how many bytes it took.
func readHeader(in *bufio.Reader, room int64) (h pageHeader, n int64, err error) {
	limit := min(room, mostHeader)
	c := &compact{in: in, left: limit}
	h.kind, h.values = -1, -1
	c.fields(typeStruct, func(id int16, kind byte) {
		switch id {
		case 1:
			h.kind = c.int32(kind)
		case 2:
			h.size = c.int32(kind)
		case 3:
			h.packed = c.int32(kind)
		case 4:
			h.sum, h.summed = uint32(c.int32(kind)), true
		case 5, 7, 8:
			c.fields(kind, func(sub int16, kind byte) { h.field(c, id, sub, kind) })
		default:
			c.skip(kind)
		}
	})
	if c.err != nil {
		return h, 0, c.err
	}
	n = limit - c.left
	if h.size < 0 || h.size > mostPage || h.packed < 0 || h.packed > mostPage || int64(h.packed) > room-n {
		return h, n, errSize
	}
	if h.repeated < 0 || h.level < 0 || int64(h.repeated)+int64(h.level) > int64(min(h.packed, h.size)) {
		return h, n, errSize
	}
	return h, n, nil
}

// field reads a field of DataPageHeader (5), DictionaryPageHeader (7) or DataPageHeaderV2 (8).
func (h *pageHeader) field(c *compact, page, id int16, kind byte) {
	switch {
	case id == 1:
		h.values = c.int32(kind)
	case page != 8 && id == 2 || page == 8 && id == 4:
		h.encoding = c.int32(kind)
	case page == 5 && id == 3:
		h.levelEncoding = c.int32(kind)
	case page == 8 && id == 5:
		h.level = c.int32(kind)
	case page == 8 && id == 6:
		h.repeated = c.int32(kind)
	case page == 8 && id == 7:
		h.plain = !c.bool(kind)
	default:
		c.skip(kind)
	}
}

// readBody reads the bytes of a page into buf.
func (h *pageHeader) readBody(in *bufio.Reader, buf []byte) ([]byte, error) {
	if cap(buf) < int(h.packed) {
		buf = make([]byte, h.packed)
	}
	buf = buf[:h.packed]
	if _, err := io.ReadFull(in, buf); err != nil {
		return buf, noEOF(err)
	}
	if h.summed && crc32.ChecksumIEEE(buf) != h.sum {
		return buf, errors.New("the checksum of a page is wrong")
	}
	return buf, nil
}

// levelsV1 cuts the definition levels off the front of a page of version 1.
func levelsV1(data []byte) (levels, rest []byte, err error) {
	if len(data) < 4 {
		return nil, nil, errShort
	}
	n := binary.LittleEndian.Uint32(data)
	if uint64(n) > uint64(len(data)-4) {
		return nil, nil, errSize
	}
	return data[4 : 4+n], data[4+n:], nil
}

// newDecoder makes the decoder of a page that is not of the dictionary.
func newDecoder(c *column, encoding int32, data []byte, most uint64) (decoder, error) {
	switch {
	case encoding == encPlain && c.physical == boolean:
		return &plainBits{in: data}, nil
	case encoding == encPlain && c.physical == byteArray:
		return &plainBytes{in: data}, nil
	case encoding == encPlain:
		return &plainFixed{in: data, width: c.width()}, nil
	case encoding == encRLE && c.physical == boolean:
		runs, _, err := levelsV1(data)
		return &runBits{hybrid{in: runs, width: 1}}, err
	case encoding == encDeltaInts && (c.physical == integer32 || c.physical == integer64):
		return newDeltaInts(data, most)
	case encoding == encDeltaLengths && c.physical == byteArray:
		return newDeltaLengths(data, most)
	case encoding == encDeltaBytes && c.physical == byteArray:
		return newDeltaBytes(data, most)
	case encoding == encSplit && c.width() > 0:
		return &splitBytes{in: data, width: c.width()}, nil
	}
	return nil, fmt.Errorf("encoding %d of %s is not read", encoding, physicalNames[c.physical])
}
