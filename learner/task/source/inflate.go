package source

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// mostWindow bounds the memory of a zstd stream: what zstd itself reads without being told more.
const mostWindow = 128 << 20

// Whole files are told by how they begin, so that it also works for standard input.
var (
	gzipMagic    = []byte{0x1f, 0x8b}
	zstdMagic    = []byte{0x28, 0xb5, 0x2f, 0xfd}
	parquetMagic = []byte("PAR1\x15") // and the beginning of a page, which no line has
)

var errIsParquet = errors.New("it is a Parquet file: say so by events.format or --format")

// inflate decompresses gzip and zstd as it reads. Close does not close in.
func inflate(in io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(in, 64<<10)
	magic, err := b.Peek(5)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(magic, gzipMagic):
		return gzip.NewReader(b)
	case bytes.HasPrefix(magic, zstdMagic):
		// With one goroutine, ours, nothing is read or decompressed ahead.
		d, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case bytes.HasPrefix(magic, parquetMagic):
		return nil, errIsParquet
	}
	return io.NopCloser(b), nil
}
