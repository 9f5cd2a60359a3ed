package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Limits of a Parquet file, far above what writers make. The library makes room for what a file declares.
const (
	mostFooter = 64 << 20
	mostHeader = 1 << 16 // bytes of a page's header
	mostPage   = 128 << 20
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

// reason replaces an error of the library, which may quote lengths that are bytes of an event, by one that
// tells only that the disk failed, or that the file is damaged.
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

// openParquet opens a file whose footer is in the file.
func openParquet(in io.ReaderAt, size int64) (*parquet.File, error) {
	const tail = 8 // bytes after the footer: its length and the magic number
	var head, last [tail]byte
	if size < int64(len(parquetEnd))+tail {
		return nil, errors.New("not a Parquet file: too short")
	}
	if _, err := in.ReadAt(head[:len(parquetEnd)], 0); err != nil {
		return nil, noEOF(err)
	}
	if _, err := in.ReadAt(last[:], size-tail); err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case string(last[4:]) == "PARE" || string(head[:4]) == "PARE":
		return nil, errors.New("the file is encrypted")
	case string(head[:4]) != parquetEnd || string(last[4:]) != parquetEnd:
		return nil, errors.New("not a Parquet file, or not the whole of one: it does not begin and end with " + parquetEnd)
	}
	if length := int64(binary.LittleEndian.Uint32(last[:4])); length > mostFooter ||
		length > size-tail-int64(len(parquetEnd)) {
		return nil, fmt.Errorf("footer: %w", errTooBig)
	}
	file, err := parquet.OpenFile(in, size, &parquet.FileConfig{
		SkipPageIndex: true, SkipBloomFilters: true, ReadMode: parquet.ReadModeSync, ReadBufferSize: 16 << 10,
		Schema: noSchema,
	})
	if err != nil {
		return nil, fmt.Errorf("footer: %w", reason(err))
	}
	if file.Metadata().EncryptionAlgorithm.Value != nil {
		return nil, errors.New("columns of the file are encrypted")
	}
	return file, nil
}

// validateChunks refuses what is not read of the column, and chunks that do not have a value for each row.
func (c *parquetColumn) validateChunks() error {
	for i, g := range c.meta.RowGroups {
		k := &g.Columns[c.Index()]
		switch codec := k.MetaData.Codec; {
		case k.FilePath != "":
			return fmt.Errorf("column %q lies in another file", c.Name())
		case k.CryptoMetadata.Value != nil || len(k.EncryptedColumnMetadata) > 0:
			return fmt.Errorf("column %q is encrypted", c.Name())
		case codec != format.Uncompressed && codec != format.Snappy && codec != format.Gzip && codec != format.Zstd:
			return fmt.Errorf("column %q is compressed by %s: want none, snappy, gzip or zstd", c.Name(), codec)
		case codec != c.chunk(0).Codec: // the library unpacks all chunks as it does the first
			return fmt.Errorf("column %q is compressed in two ways, which is not read", c.Name())
		case k.MetaData.NumValues != g.NumRows:
			return fmt.Errorf("column %q in row group %d: %w", c.Name(), i, errDamaged)
		}
	}
	return nil
}

// chunk returns the footer's metadata of the column in a row group.
func (c *parquetColumn) chunk(group int) *format.ColumnMetaData {
	return &c.meta.RowGroups[group].Columns[c.Index()].MetaData
}

// A stretch is rows of a chunk that come one after the other.
type stretch struct {
	rows    int64
	omitted bool // their pages are too large to be read
}

// A hole is a page that is passed over.
type hole struct{ at, size int64 }

// pagesOf looks at the pages of a chunk up to its last row. Pages of more than most bytes are left out, and
// with a left-out dictionary all values that use it; pages that declare more than the chunk holds are refused.
func pagesOf(in io.ReaderAt, m *format.ColumnMetaData, rows, most int64) (parts []stretch, holes []hole, err error) {
	at, room := m.DataPageOffset, m.TotalCompressedSize
	if m.DictionaryPageOffset != 0 {
		at = m.DictionaryPageOffset
	}
	unreadable := false // the dictionary
	for rows > 0 {
		h, head, err := pageHeader(in, at, room)
		if err != nil {
			return nil, nil, err
		}
		size, values := int64(h.CompressedPageSize), max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues)
		words := h.DictionaryPageHeader.V.NumValues // a word takes 4 bytes or more
		if room -= head + size; size < 0 || room < 0 || h.UncompressedPageSize < 0 ||
			values < 0 || int64(values) > rows || words < 0 || words > h.UncompressedPageSize/4 {
			return nil, nil, fmt.Errorf("page header: %w", errTooBig)
		}
		omit := max(size, int64(h.UncompressedPageSize)) > most
		if omit || unreadable {
			holes = append(holes, hole{at, head + size})
		}
		if h.Type == format.DictionaryPage {
			unreadable = unreadable || omit
		}
		if values > 0 {
			parts = append(parts, stretch{int64(values), omit || unreadable})
		}
		at += head + size
		rows -= int64(values)
	}
	return parts, holes, nil
}

// pageHeader reads the header of a page and how long it is.
func pageHeader(in io.ReaderAt, at, room int64) (h format.PageHeader, size int64, err error) {
	for most := int64(mostHeader); ; most *= 16 { // statistics in it may hold whole values
		header := make([]byte, max(0, min(room, most)))
		if n, err := in.ReadAt(header, at); err != nil && err != io.EOF {
			return h, 0, reason(err)
		} else if header = header[:n]; n == 0 {
			return h, 0, fmt.Errorf("page header: %w", errTooBig)
		}
		h = format.PageHeader{}
		r := new(thrift.CompactProtocol).NewReaderFromBytes(header)
		if err := thrift.NewDecoder(r).Decode(&h); err == nil {
			return h, int64(r.BytesRead()), nil
		}
		if int64(len(header)) < most || most >= mostPage {
			return h, 0, fmt.Errorf("page header: %w", errDamaged)
		}
	}
}

// A view is a file without its holes.
type view struct {
	in    io.ReaderAt
	holes []hole // in their order
}

// ReadAt reads from the file as it is without its holes: up to the next one at least.
func (v view) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && err == nil {
		at, most := off+int64(n), int64(len(p)-n)
		for _, h := range v.holes {
			if at < h.at {
				most = min(most, h.at-at)
				break
			}
			at += h.size
		}
		var got int
		got, err = v.in.ReadAt(p[n:n+int(most)], at)
		n += got
	}
	if n == len(p) {
		err = nil
	}
	return n, err
}
