package parquet

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// codecs are the compressions that are read.
var codecs = map[int32]string{0: "UNCOMPRESSED", 1: "SNAPPY", 2: "GZIP", 6: "ZSTD"}

func codecName(id int32) string {
	if name, ok := map[int32]string{3: "LZO", 4: "BROTLI", 5: "LZ4", 7: "LZ4_RAW"}[id]; ok {
		return name
	}
	return fmt.Sprintf("codec %d", id)
}

var errPacked = errors.New("a page does not decompress to its size")

// inflater decompresses pages. What it writes grows with what it has read, and ends at the size that the page declares.
type inflater struct {
	out  bytes.Buffer
	gzip *gzip.Reader // made when it is first needed
	zstd *zstd.Decoder
}

// inflate returns the page, in memory that is valid until the next call.
func (f *inflater) inflate(codec int32, in []byte, size int) ([]byte, error) {
	switch codec {
	case 0:
		return in, nil
	case 1:
		n, err := snappy.DecodedLen(in)
		if err != nil || n != size || n/64 > len(in) { // three bytes copy at most 64
			return nil, errPacked
		}
		f.out.Reset()
		f.out.Grow(size)
		out, err := snappy.Decode(f.out.AvailableBuffer()[:size], in)
		if err != nil {
			return nil, errPacked
		}
		return out, nil
	case 2:
		if f.gzip == nil {
			f.gzip = new(gzip.Reader)
		}
		if err := f.gzip.Reset(bytes.NewReader(in)); err != nil {
			return nil, errPacked
		}
		return f.read(f.gzip, size)
	}
	if f.zstd == nil {
		var err error
		// One goroutine, ours; and no window larger than a page can be.
		if f.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostPage)); err != nil {
			return nil, err
		}
	}
	if err := f.zstd.Reset(bytes.NewReader(in)); err != nil {
		return nil, errPacked
	}
	return f.read(f.zstd, size)
}

func (f *inflater) read(r io.Reader, size int) ([]byte, error) {
	f.out.Reset()
	n, err := f.out.ReadFrom(io.LimitReader(r, int64(size)+1))
	if err != nil || n != int64(size) {
		return nil, errPacked
	}
	return f.out.Bytes(), nil
}

func (f *inflater) close() {
	if f.zstd != nil {
		f.zstd.Close()
	}
}
