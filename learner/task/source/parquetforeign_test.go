package source

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	library "github.com/parquet-go/parquet-go"
)

// TestParquetOfOtherWriters checks that files that other programs wrote are read as those programs mean them;
// testdata/parquet/README.md lists their origins.
func TestParquetOfOtherWriters(t *testing.T) {
	var cents, fruits []string
	for i := range 24 {
		cents = append(cents, strconv.Itoa(100*(i+1))+"e-2")
	}
	for i := range 1000 {
		fruits = append(fruits, "apple_banana_mango"+strconv.Itoa(i*i))
	}
	for _, c := range []struct {
		file string
		ask  wanted
		want []string
	}{
		{"alltypes_plain.snappy", wanted{"id", number}, []string{"6", "7"}},
		{"alltypes_plain.snappy", wanted{"bool_col", word}, []string{"true", "false"}},
		{"alltypes_plain.snappy", wanted{"bigint_col", number}, []string{"0", "10"}},
		{"alltypes_plain.snappy", wanted{"float_col", number}, []string{"0", "1.100000023841858"}},
		{"alltypes_plain.snappy", wanted{"double_col", either}, []string{"0", "10.1"}},
		{"alltypes_plain.snappy", wanted{"date_string_col", word}, []string{"04/01/09", "04/01/09"}},
		{"datapage_v2.snappy", wanted{"a", word}, []string{"abc", "abc", "abc", "", "abc"}},
		{"datapage_v2.snappy", wanted{"b", number}, []string{"1", "2", "3", "4", "5"}},
		{"datapage_v2.snappy", wanted{"c", number}, []string{"2", "3", "4", "5", "2"}},
		{"datapage_v2.snappy", wanted{"d", number}, []string{"1", "1", "1", "0", "1"}},
		{"int32_decimal", wanted{"value", number}, cents},
		{"rle_boolean_encoding", wanted{"datatype_boolean", word}, strings.Split(
			"true,false,,true,true,false,false,true,true,true,false,false,true,true,false,,true,true,false,false,true,true,false,,true,true,"+
				"false,false,true,true,true,false,false,false,false,true,true,false,,true,true,false,false,true,true,true,false,false,,true,true,"+
				"false,false,true,true,true,false,true,true,false,,true,true,false,false,true,true,true", ",")},
		{"delta_length_byte_array", wanted{"FRUIT", word}, fruits},
		{"data_index_bloom_encoding_stats", wanted{"String", word}, []string{"Hello", "This is", "a", "test", "How",
			"are you", "doing ", "today",
			"the quick", "brown fox", "jumps", "over", "the lazy", "dog"}},
		{"null_columns", wanted{"name", word}, []string{"test1", "test2", "test3", "test4"}},
		{"null_columns", wanted{"value", number}, []string{"", "", "", ""}},
	} {
		data, err := os.ReadFile(filepath.Join("testdata", "parquet", c.file+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := tableOf(data, []wanted{c.ask})
		var got []string
		for _, r := range rows {
			got = append(got, r[0])
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s, column %s: got %q, %v, want %q", c.file, c.ask.name, got, err, c.want)
		}
	}
}

// TestParquetIsReadByThePage checks that reading takes memory for a page, not for a file or a row group.
func TestParquetIsReadByThePage(t *testing.T) {
	type event struct{ X float64 }
	const rows = 1 << 20
	r := rand.New(rand.NewPCG(1, 2))
	events := make([]event, rows)
	for i := range events {
		events[i].X = r.Float64()
	}
	var b bytes.Buffer
	w := library.NewGenericWriter[event](&b, library.Compression(&library.Zstd), library.PageBufferSize(64<<10))
	if _, err := w.Write(events); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	data := b.Bytes()
	before := live()
	in, err := openColumns(bytes.NewReader(data), int64(len(data)), []wanted{{"X", number}})
	if err != nil {
		t.Fatal(err)
	}
	most := int64(0)
	for i := range rows {
		if err := in.read(); err != nil {
			t.Fatal(err)
		}
		if want := strconv.FormatFloat(events[i].X, 'g', -1, 64); in.values[0] != want {
			t.Fatalf("row %d: got %s, want %s", i, in.values[0], want)
		}
		if i%(rows/16) == rows/32 {
			most = max(most, live()-before)
		}
	}
	if most > int64(len(data))/4 {
		t.Errorf("%d bytes are held while a file of %d is read", most, len(data))
	}
	if err := in.close(); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(events)
}
