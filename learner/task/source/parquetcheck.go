package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Limits of a Parquet file. They are far above what writers make, and bound what a damaged file makes the library
// allocate, because it allocates what a file declares.
const (
	mostFooter = 64 << 20
	mostItems  = 1 << 17 // of a list: columns, row groups
	mostDepth  = 32      // of the schema, and of structures in the footer
	mostHeader = 1 << 20 // bytes of a page's header
	mostPage   = 128 << 20
	mostValues = 1 << 24 // of a page
	parquetEnd = "PAR1"
)

var (
	errDamaged = errors.New("damaged, or not as the format has it")
	errTooBig  = errors.New("it declares more than it holds, or than is read")
)

// noSchema spares the library a Go type of the columns, which it would keep for ever.
var noSchema = parquet.NewSchema("events", parquet.Group{})

// guarded turns panics into errors: the library panics on damaged files, also about memory that is not there.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = errDamaged
		}
	}()
	return f()
}

// reason is what is told of an error of the library, which may quote lengths that are bytes of an event: that the disk
// failed, or that the file is damaged.
func reason(err error) error {
	var disk *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &disk):
		return disk
	case errors.Is(err, parquet.ErrCorrupted):
		return fmt.Errorf("%w: a checksum or a size does not hold", errDamaged)
	}
	return errDamaged
}

// openParquet opens a file whose footer is plausible. The pages are before end.
func openParquet(in io.ReaderAt, size int64) (file *parquet.File, end int64, err error) {
	if end, err = checkFooter(in, size); err != nil {
		return nil, 0, err
	}
	file, err = parquet.OpenFile(in, size, &parquet.FileConfig{
		SkipPageIndex: true, SkipBloomFilters: true, ReadMode: parquet.ReadModeSync, ReadBufferSize: 16 << 10, Schema: noSchema,
	})
	if err != nil {
		return nil, 0, fmt.Errorf("footer: %w", reason(err))
	}
	return file, end, nil
}

// checkFooter says where the footer begins.
func checkFooter(in io.ReaderAt, size int64) (int64, error) {
	const tail = 8 // bytes after the footer: its length and the magic number
	if size < int64(len(parquetEnd))+tail {
		return 0, errors.New("not a Parquet file: too short")
	}
	var head, last [tail]byte
	if _, err := in.ReadAt(head[:len(parquetEnd)], 0); err != nil {
		return 0, noEOF(err)
	}
	if _, err := in.ReadAt(last[:], size-tail); err != nil && err != io.EOF {
		return 0, err
	}
	if string(last[4:]) == "PARE" || string(head[:4]) == "PARE" {
		return 0, errors.New("the file is encrypted")
	}
	if string(head[:4]) != parquetEnd || string(last[4:]) != parquetEnd {
		return 0, errors.New("not a Parquet file, or not the whole of one: it does not begin and end with " + parquetEnd)
	}
	length := int64(binary.LittleEndian.Uint32(last[:4]))
	end := size - tail - length
	if length > mostFooter || end < int64(len(parquetEnd)) {
		return 0, fmt.Errorf("footer: %w", errTooBig)
	}
	footer := make([]byte, length)
	if _, err := in.ReadAt(footer, end); err != nil {
		return 0, fmt.Errorf("footer: %w", noEOF(err))
	}
	var meta format.FileMetaData
	if n, err := decodeThrift(footer, &meta); err != nil || n != len(footer) {
		return 0, fmt.Errorf("footer: %w", errDamaged)
	}
	if meta.EncryptionAlgorithm.Value != nil {
		return 0, errors.New("columns of the file are encrypted")
	}
	return end, checkMeta(&meta)
}

// checkMeta checks that the schema is a tree, and that every row group has a chunk of each of its leaves.
func checkMeta(meta *format.FileMetaData) error {
	open, leaves := []int32{1}, 0 // elements that are still to come, of every group that is open
	for _, e := range meta.Schema {
		if len(open) == 0 || len(open) > mostDepth || e.NumChildren.V < 0 || e.Type.Valid && e.NumChildren.V > 0 {
			return fmt.Errorf("schema: %w", errDamaged)
		}
		open[len(open)-1]--
		if e.Type.Valid {
			leaves++
		} else {
			open = append(open, e.NumChildren.V)
		}
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("schema: %w", errDamaged)
	}
	rows := int64(0)
	for i, g := range meta.RowGroups {
		if len(g.Columns) != leaves || g.NumRows < 0 || rows+g.NumRows < rows {
			return fmt.Errorf("row group %d: %w", i, errDamaged)
		}
		rows += g.NumRows
	}
	if rows != meta.NumRows {
		return fmt.Errorf("%d rows in the row groups, %d in the file: %w", rows, meta.NumRows, errDamaged)
	}
	return nil
}

// chunk is what the footer says of the column in a row group.
func (c *parquetColumn) chunk(group int) *format.ColumnMetaData {
	return &c.meta.RowGroups[group].Columns[c.Index()].MetaData
}

// checkChunks checks what the footer says of the column, whose pages are before end.
func (c *parquetColumn) checkChunks(end int64) error {
	for i, g := range c.meta.RowGroups {
		k := &g.Columns[c.Index()]
		m := &k.MetaData
		start := chunkStart(m)
		_, known := readCodecs[m.Codec]
		switch null := c.Type().Kind() < 0; {
		case k.FilePath != "":
			return fmt.Errorf("column %q lies in another file", c.Name())
		case k.CryptoMetadata.Value != nil || len(k.EncryptedColumnMetadata) > 0:
			return fmt.Errorf("column %q is encrypted", c.Name())
		case !known:
			return fmt.Errorf("column %q is compressed by %s: want none, snappy, gzip or zstd", c.Name(), m.Codec)
		case m.Codec != c.chunk(0).Codec: // the library unpacks all chunks as it does the first
			return fmt.Errorf("column %q is compressed in two ways, which is not read", c.Name())
		case !null && m.Type != *c.Type().PhysicalType() || m.NumValues != g.NumRows:
			return fmt.Errorf("column %q in row group %d: %w", c.Name(), i, errDamaged)
		case g.NumRows > 0 && (m.TotalCompressedSize < 0 || start < int64(len(parquetEnd)) || start > end || m.TotalCompressedSize > end-start):
			return fmt.Errorf("column %q in row group %d: %w", c.Name(), i, errTooBig)
		}
	}
	return nil
}

var readCodecs = map[format.CompressionCodec]bool{format.Uncompressed: true, format.Snappy: true, format.Gzip: true, format.Zstd: true}

// chunkStart is where the library begins to read.
func chunkStart(m *format.ColumnMetaData) int64 {
	if m.DictionaryPageOffset != 0 {
		return m.DictionaryPageOffset
	}
	return m.DataPageOffset
}

// checkPages walks over the headers of a chunk's pages, up to the last row.
func checkPages(in io.ReaderAt, m *format.ColumnMetaData, rows int64) error {
	at, room := chunkStart(m), m.TotalCompressedSize
	for rows > 0 {
		h, n, err := readHeader(in, at, room)
		if err != nil {
			return fmt.Errorf("page header: %w", err)
		}
		size := int64(h.CompressedPageSize)
		if size < 0 || size > mostPage || size > room-n || h.UncompressedPageSize < 0 || h.UncompressedPageSize > mostPage {
			return fmt.Errorf("page header: %w", errTooBig)
		}
		values, levels, packed := int64(0), int32(0), true
		switch {
		case h.Type == format.DataPage && h.DataPageHeader.Valid:
			values = int64(h.DataPageHeader.V.NumValues)
		case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
			v := h.DataPageHeaderV2.V
			values, packed = int64(v.NumValues), !v.IsCompressed.Valid || v.IsCompressed.V
			levels = v.RepetitionLevelsByteLength + v.DefinitionLevelsByteLength
			if v.RepetitionLevelsByteLength < 0 || v.DefinitionLevelsByteLength < 0 || levels < 0 || int64(levels) > size ||
				levels > h.UncompressedPageSize || v.NumNulls < 0 || v.NumNulls > v.NumValues {
				return fmt.Errorf("page header: %w", errTooBig)
			}
		case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
			if n := h.DictionaryPageHeader.V.NumValues; n < 0 || n > h.UncompressedPageSize/4 { // a value takes 4 bytes or more
				return fmt.Errorf("dictionary: %w", errTooBig)
			}
		default:
			return fmt.Errorf("page header: %w", errDamaged)
		}
		if values < 0 || values > mostValues || values > rows {
			return fmt.Errorf("page header: %w", errTooBig)
		}
		if packed {
			if err := checkPacked(in, m.Codec, at+n+int64(levels), size-int64(levels), h.UncompressedPageSize-levels); err != nil {
				return err
			}
		}
		at, room, rows = at+n+size, room-n-size, rows-values
	}
	return nil
}

// checkPacked compares the size that a compressed page declares for itself with that of its header.
func checkPacked(in io.ReaderAt, codec format.CompressionCodec, at, size int64, unpacked int32) error {
	if codec != format.Snappy && codec != format.Zstd || size == 0 {
		return nil
	}
	var buffer [zstd.HeaderMaxSize]byte
	begin := buffer[:min(size, int64(len(buffer)))]
	if _, err := in.ReadAt(begin, at); err != nil {
		return noEOF(err)
	}
	if codec == format.Snappy {
		if n, err := snappy.DecodedLen(begin); err != nil || n != int(unpacked) {
			return fmt.Errorf("a page does not decompress to its size: %w", errDamaged)
		}
		return nil
	}
	var h zstd.Header
	if err := h.Decode(begin); err != nil || h.HasFCS && h.FrameContentSize > uint64(unpacked) || h.WindowSize > mostPage {
		return fmt.Errorf("a page does not decompress to its size: %w", errDamaged)
	}
	return nil
}

// readHeader reads the header of the page at an offset and its length, which is at most room.
func readHeader(in io.ReaderAt, at, room int64) (*format.PageHeader, int64, error) {
	for size := int64(1 << 10); ; size <<= 5 {
		buffer := make([]byte, min(size, room))
		if _, err := in.ReadAt(buffer, at); err != nil {
			return nil, 0, noEOF(err)
		}
		h := new(format.PageHeader)
		n, err := decodeThrift(buffer, h)
		if err == nil {
			return h, int64(n), nil
		}
		if size >= min(room, mostHeader) {
			return nil, 0, errDamaged
		}
	}
}
