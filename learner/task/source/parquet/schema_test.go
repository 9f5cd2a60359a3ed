package parquet

import (
	"bytes"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"

	library "github.com/parquet-go/parquet-go"

	"github.com/panlearn/panlearn/internal/parquettest"
)

// Types are checked once, when the file is opened, and the refusal says what was wanted and found.
func TestTypesAreChecked(t *testing.T) {
	type item struct {
		Nested struct{ A, B int32 }
		List   []string
		After  int64
	}
	var nested bytes.Buffer
	w := library.NewGenericWriter[item](&nested)
	if _, err := w.Write([]item{{List: []string{"a", "b"}, After: 7}, {After: 8}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	flat := func(node library.Node) []byte {
		data, err := parquettest.Encode([]parquettest.Column{{Name: "x", Node: node}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, c := range []struct {
		data []byte
		ask  Column
		want string // empty: it is read
	}{
		{flat(library.Leaf(library.DoubleType)), Column{"y", Number}, `column "y" is not in the file`},
		{flat(library.Leaf(library.DoubleType)), Column{"x", Number}, ""},
		{flat(library.Leaf(library.DoubleType)), Column{"x", Word}, `column "x": want a word (a string, INT32, INT64 or BOOLEAN), found DOUBLE`},
		{flat(library.String()), Column{"x", Number}, `column "x": want a number (BOOLEAN, INT32, INT64, FLOAT or DOUBLE), found BYTE_ARRAY (STRING)`},
		{flat(library.JSON()), Column{"x", Word}, "found BYTE_ARRAY (JSON)"},
		{flat(library.Date()), Column{"x", Number}, "found INT32 (DATE)"},
		{flat(library.Timestamp(library.Millisecond)), Column{"x", Any}, "found INT64 (TIMESTAMP)"},
		{flat(library.UUID()), Column{"x", Any}, "found FIXED_LEN_BYTE_ARRAY (UUID)"},
		{flat(library.Decimal(2, 9, library.Int32Type)), Column{"x", Word}, "found INT32 (DECIMAL)"},
		{flat(library.Decimal(2, 9, library.ByteArrayType)), Column{"x", Number}, "found BYTE_ARRAY (DECIMAL)"},
		{flat(library.Leaf(library.Int96Type)), Column{"x", Number}, "found INT96"},
		{flat(library.Repeated(library.String())), Column{"x", Word}, "found a repeated column"},
		{nested.Bytes(), Column{"Nested", Number}, `column "Nested": want a number (BOOLEAN, INT32, INT64, FLOAT or DOUBLE), found a nested column`},
		{nested.Bytes(), Column{"A", Number}, "is not in the file"},
		{nested.Bytes(), Column{"List", Word}, "found a "},
		{flat(library.Compressed(library.String(), &library.Brotli)), Column{"x", Word}, ""}, // no rows, so no codec
	} {
		_, err := readRows(c.data, []Column{c.ask})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: got %v, want %q", c.ask, err, c.want)
		}
	}
	got, err := readRows(nested.Bytes(), []Column{{"After", Number}})
	if err != nil || len(got) != 2 || got[0][0] != "7" || got[1][0] != "8" {
		t.Errorf("beside nested columns: %q, %v", got, err)
	}
	got, err = readRows(nested.Bytes(), []Column{{"After", Number}, {"After", Word}})
	if err != nil || len(got) != 2 || !slices.Equal(got[1], []string{"8", "8"}) {
		t.Errorf("a column that is asked for twice: %q, %v", got, err)
	}
	if _, err := Open(bytes.NewReader(nil), 0, nil); err == nil {
		t.Error("opened for no columns")
	}
}

// Compressions that are not read are refused before a row is.
func TestCodecsAreChecked(t *testing.T) {
	for name, codec := range map[string]library.WriterOption{"BROTLI": library.Compression(&library.Brotli), "LZ4_RAW": library.Compression(&library.Lz4Raw)} {
		data, err := parquettest.Encode([]parquettest.Column{{Name: "x"}, {Name: "y"}}, [][]any{{"a", int64(1)}}, codec)
		if err != nil {
			t.Fatal(err)
		}
		want := `column "y" is compressed by ` + name + ": want none, snappy, gzip or zstd"
		if _, err := Open(bytes.NewReader(data), int64(len(data)), []Column{{"y", Number}}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// An error of a page names the column; the reader stays where it broke.
func TestErrorsAreFinal(t *testing.T) {
	f := forge{physical: integer32, rows: 20}.page(10, encPlain, 40, make([]byte, 40)).page(10, encPlain, 36, make([]byte, 36))
	data := f.bytes()
	r, err := Open(bytes.NewReader(data), int64(len(data)), []Column{{"x", Number}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows := 0
	for dst := make([]string, 1); err == nil; rows++ {
		err = r.Next(dst)
	}
	if rows != 20 || err == io.EOF || !strings.Contains(err.Error(), `column "x"`) {
		t.Errorf("row %d: %v", rows, err)
	}
	if again := r.Next(make([]string, 1)); again != err {
		t.Errorf("after %v came %v", err, again)
	}
}

// The checksum of a page is compared where there is one.
func TestChecksum(t *testing.T) {
	for wrong, ok := range map[uint32]bool{0: true, 1: false} {
		body := []byte{1, 2, 3, 4}
		sum := int32(crc32.ChecksumIEEE(body) + wrong)
		h := thrift{}.int(1, dataPage).int(2, 4).int(3, 4).int(4, int64(sum)).inner(5, thrift{}.int(1, 1).int(2, encPlain).int(3, encRLE))
		got, err := readRows(forge{physical: integer32, rows: 1, pages: append(h.end(), body...)}.bytes(), []Column{{"x", Number}})
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "checksum") {
			t.Errorf("sum off by %d: read %q, %v", wrong, got, err)
		}
	}
}
