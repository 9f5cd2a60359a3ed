package source

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	library "github.com/parquet-go/parquet-go"

	"github.com/panlearn/panlearn/internal/test/parquettest"
)

// TestParquetTypesAreChecked checks that types are checked once, when the file is opened, and that the refusal
// names the wanted and the found type.
func TestParquetTypesAreChecked(t *testing.T) {
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
		ask  wanted
		want string // empty: it is read
	}{
		{flat(library.Leaf(library.DoubleType)), wanted{"y", number}, `column "y" is not in the file`},
		{flat(library.Leaf(library.DoubleType)), wanted{"x", number}, ""},
		{flat(library.Leaf(library.DoubleType)), wanted{"x", word},
			`column "x": want a word (a string, INT32, INT64 or BOOLEAN), found DOUBLE`},
		{flat(library.String()), wanted{"x", number},
			`column "x": want a number (BOOLEAN, INT32, INT64, FLOAT or DOUBLE), found BYTE_ARRAY (STRING)`},
		{flat(library.JSON()), wanted{"x", word}, "found BYTE_ARRAY (JSON)"},
		{flat(library.Date()), wanted{"x", number}, "found INT32 (DATE)"},
		{flat(library.Timestamp(library.Millisecond)), wanted{"x", word}, "found INT64 (TIMESTAMP)"},
		{flat(library.UUID()), wanted{"x", either}, "found FIXED_LEN_BYTE_ARRAY (UUID)"},
		{flat(library.Decimal(2, 9, library.Int32Type)), wanted{"x", word}, "found INT32 (DECIMAL)"},
		{flat(library.Decimal(2, 9, library.ByteArrayType)), wanted{"x", number}, "found BYTE_ARRAY (DECIMAL)"},
		{flat(library.Leaf(library.Int96Type)), wanted{"x", number}, "found INT96"},
		{flat(library.Repeated(library.String())), wanted{"x", word}, "found a repeated column"},
		{nested.Bytes(), wanted{"Nested", number},
			`column "Nested": want a number (BOOLEAN, INT32, INT64, FLOAT or DOUBLE), found a nested column`},
		{nested.Bytes(), wanted{"A", number}, "is not in the file"},
		{nested.Bytes(), wanted{"List", word}, "found a "},
		{flat(library.Compressed(library.String(), &library.Brotli)), wanted{"x", word}, ""}, // no rows, so no codec
	} {
		_, err := tableOf(c.data, []wanted{c.ask})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: got %v, want %q", c.ask, err, c.want)
		}
	}
	got, err := tableOf(nested.Bytes(), []wanted{{"After", number}})
	if err != nil || len(got) != 2 || got[0][0] != "7" || got[1][0] != "8" {
		t.Errorf("beside nested columns: %q, %v", got, err)
	}
	got, err = tableOf(nested.Bytes(), []wanted{{"After", number}, {"After", word}})
	if err != nil || len(got) != 2 || !slices.Equal(got[1], []string{"8", "8"}) {
		t.Errorf("a column that is asked for twice: %q, %v", got, err)
	}
}

// TestParquetCodecsAreChecked: compressions that are not read are refused before a row is.
func TestParquetCodecsAreChecked(t *testing.T) {
	for name, codec := range map[string]library.WriterOption{"BROTLI": library.Compression(&library.Brotli),
		"LZ4_RAW": library.Compression(&library.Lz4Raw)} {
		data, err := parquettest.Encode([]parquettest.Column{{Name: "x"}, {Name: "y"}}, [][]any{{"a", int64(1)}}, codec)
		if err != nil {
			t.Fatal(err)
		}
		want := `column "y" is compressed by ` + name + ": want none, snappy, gzip or zstd"
		if _, err := openColumns(bytes.NewReader(data), int64(len(data)), []wanted{{"y", number}}); err == nil ||
			err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
