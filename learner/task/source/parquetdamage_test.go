package source

import (
	"bytes"
	"io"
	"strings"
	"testing"

	library "github.com/parquet-go/parquet-go"

	"github.com/panlearn/panlearn/internal/test/parquettest"
)

// countRows reads at most limit rows of a file of unknown worth.
func countRows(data []byte, ask []wanted, limit int) (rows int, err error) {
	r, err := openColumns(bytes.NewReader(data), int64(len(data)), ask)
	if err != nil {
		return 0, err
	}
	for rows < limit && err == nil {
		if err = r.read(); err == nil {
			rows++
		}
	}
	if closing := r.close(); closing != nil {
		return rows, closing
	}
	return rows, err
}

func damageable(t testing.TB, version int, codec library.WriterOption) ([]byte, []wanted) {
	t.Helper()
	columns := []parquettest.Column{{Name: "s", Node: library.Optional(library.Encoded(library.String(),
		&library.RLEDictionary))}, {Name: "n"}, {Name: "b"},
		{Name: "d", Node: library.Encoded(library.Leaf(library.Int64Type), &library.DeltaBinaryPacked)},
		{Name: "p", Node: library.Encoded(library.String(), &library.DeltaByteArray)}}
	var rows [][]any
	for i := range 20 {
		row := []any{"Private", float64(i) / 3, i%2 == 0, int64(i * i), strings.Repeat("ab", i/4)}
		if i%5 == 0 {
			row[0] = nil
		}
		rows = append(rows, row)
	}
	data, err := parquettest.Encode(columns, rows, codec, library.DataPageVersion(version), library.MaxRowsPerRowGroup(12))
	if err != nil {
		t.Fatal(err)
	}
	return data, []wanted{{"s", word}, {"n", number}, {"b", either}, {"d", number}, {"p", word}}
}

// TestParquetDamageAnywhere: a file that ends early is an error, at every byte: its footer is at its end. A
// file with a damaged byte is an error or has all of its rows; it never panics. The pages have checksums, as
// most writers make them.
func TestParquetDamageAnywhere(t *testing.T) {
	for version, codec := range map[int]library.WriterOption{1: library.Compression(&library.Snappy),
		2: library.Compression(&library.Gzip)} {
		data, ask := damageable(t, version, codec)
		sound, err := tableOf(data, ask)
		if err != nil || len(sound) != 20 {
			t.Fatalf("%d rows, then %v", len(sound), err)
		}
		for n := range data {
			if _, err := countRows(data[:n], ask, 1000); err == nil || err == io.EOF {
				t.Fatalf("the first %d of %d bytes are a file", n, len(data))
			}
		}
		bad := bytes.Clone(data)
		for i := range bad {
			for _, b := range []byte{0, 0xff, data[i] ^ 1, data[i] ^ 0x80} {
				bad[i] = b
				rows, err := countRows(bad, ask, 1000)
				if err == io.EOF && rows != len(sound) {
					t.Errorf("byte %d as %#02x: %d rows", i, b, rows)
				}
				if err != nil && strings.Contains(err.Error(), "Private") {
					t.Errorf("byte %d as %#02x: an error with a value: %v", i, b, err)
				}
			}
			bad[i] = data[i]
		}
	}
}

// TestParquetPageErrors checks that the checksum of a page is compared, and that the error mentions it and
// names the column. Damage inside a page without one is reported without the library's text: the length of a
// string that is not there is bytes of a row.
func TestParquetPageErrors(t *testing.T) {
	data, ask := damageable(t, 1, library.Compression(&library.Uncompressed))
	at := bytes.Index(data, []byte("Private"))
	if at < 0 {
		t.Fatal("the value is not in the file as it is")
	}
	data[at] ^= 1
	if _, err := countRows(data, ask, 1000); err == nil || !strings.Contains(err.Error(), `column "s": `) ||
		!strings.Contains(err.Error(), "checksum") {
		t.Errorf("a changed value: %v", err)
	}
	for _, err := range []error{io.ErrUnexpectedEOF, errTooBig} {
		if got := reason(err); got != errDamaged {
			t.Errorf("%v is told as %v", err, got)
		}
	}
}

// TestParquetBounds: a file that is not one, or declares what it cannot hold, is refused when it is opened or
// when its pages are read, with a bound on memory.
func TestParquetBounds(t *testing.T) {
	data, ask := damageable(t, 1, library.Compression(&library.Uncompressed))
	tail := len(data) - 8
	for name, change := range map[string]func([]byte) []byte{
		"a footer larger than the file": func(b []byte) []byte { b[tail+3] = 0x7f; return b },
		"another beginning":             func(b []byte) []byte { b[0] = 'Q'; return b },
		"encrypted":                     func(b []byte) []byte { copy(b[tail+4:], "PARE"); return b },
		"nothing":                       func([]byte) []byte { return nil },
		"too short":                     func(b []byte) []byte { return b[:8] },
	} {
		if _, err := countRows(change(bytes.Clone(data)), ask, 1000); err == nil || err == io.EOF {
			t.Errorf("%s: read, then %v", name, err)
		}
	}
	f, err := openColumns(bytes.NewReader(data), int64(len(data)), ask)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range f.columns {
		m := *c.chunk(0)
		if _, _, err := pagesOf(bytes.NewReader(data), &m, f.file.RowGroups()[0].NumRows(), mostPage); err != nil {
			t.Errorf("%s: %v", c.Name(), err)
		}
		m.TotalCompressedSize--
		if _, _, err := pagesOf(bytes.NewReader(data), &m, f.file.RowGroups()[0].NumRows(), mostPage); err == nil {
			t.Errorf("%s: a page that is longer than its chunk", c.Name())
		}
		m.TotalCompressedSize++
		if _, _, err := pagesOf(bytes.NewReader(data), &m, 1, mostPage); err == nil {
			t.Errorf("%s: a page with more values than rows", c.Name())
		}
	}
}
