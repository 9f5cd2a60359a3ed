package parquet

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	library "github.com/parquet-go/parquet-go"

	"github.com/panlearn/panlearn/internal/deep"
	"github.com/panlearn/panlearn/internal/parquettest"
)

// allocated says how many bytes f allocates in all.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// firstRows reads at most limit rows of a file of unknown worth.
func firstRows(data []byte, ask []Column, limit int) (rows int, err error) {
	r, err := Open(bytes.NewReader(data), int64(len(data)), ask)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	dst := make([]string, len(ask))
	for rows < limit {
		if err := r.Next(dst); err != nil {
			return rows, err
		}
		rows++
	}
	return rows, nil
}

func zstdZeros(t *testing.T, n int) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(make([]byte, n), nil)
}

func gzipZeros(t *testing.T, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.CopyN(w, zeros{}, n); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A file that says more than it holds is refused before memory is spent on what it says.
func TestHostileSizes(t *testing.T) {
	number, word := []Column{{"x", Number}}, []Column{{"x", Word}}
	ints := forge{physical: integer32, rows: 10}
	texts := forge{physical: byteArray, rows: 10}
	header := func(items ...int64) []byte { // of DELTA_BINARY_PACKED
		var b []byte
		for _, v := range items {
			b = binary.AppendUvarint(b, uint64(v))
		}
		return b
	}
	packed := func(f forge, codec int64) forge { f.codec = codec; return f }
	footer := func(t thrift) forge { return forge{footer: t.end()} }
	for name, c := range map[string]struct {
		file forge
		ask  []Column
	}{
		"two thousand million columns": {footer(thrift{}.list(2, typeStruct, math.MaxInt32)), number},
		"a name of a gigabyte":         {footer(thrift{}.list(2, typeStruct, 1, append(thrift{}.field(4, typeBinary), 0x80, 0x80, 0x80, 0x80, 0x04))), number},
		"groups for ever": {footer(thrift{}.list(2, typeStruct, 2, thrift{}.text(4, "root").int(5, 1), thrift{}.int(1, 1).text(4, "x")).
			int(3, 0).list(4, typeStruct, math.MaxInt32)), number},
		"nested for ever":            {forge{footer: bytes.Repeat([]byte{0x1c}, 1<<23)}, number},
		"lists in lists":             {forge{footer: append([]byte{0xf9}, bytes.Repeat([]byte{0x19}, 1<<23)...)}, number},
		"a page of two gigabytes":    {ints.page(10, encPlain, math.MaxInt32, make([]byte, 40)), number},
		"a negative page":            {ints.page(10, encPlain, -1, make([]byte, 40)), number},
		"a chunk beyond the file":    {forge{physical: integer32, rows: 10, chunkBytes: 1 << 40}.page(10, encPlain, 40, make([]byte, 40)), number},
		"more values than the chunk": {ints.page(11, encPlain, 44, make([]byte, 44)), number},
		"values that are not there":  {ints.page(10, encPlain, 36, make([]byte, 36)), number},
		"snappy of four gigabytes":   {packed(ints.page(10, encPlain, mostPage, snappy.Encode(nil, make([]byte, 10))), 1), number},
		"snappy that says so":        {packed(ints.page(10, encPlain, mostPage, binary.AppendUvarint(nil, mostPage)), 1), number},
		"gzip bomb":                  {packed(ints.page(10, encPlain, 40, gzipZeros(t, 64<<20)), 2), number},
		"zstd bomb":                  {packed(ints.page(10, encPlain, 40, zstdZeros(t, 64<<20)), 6), number},
		"a string of a gigabyte":     {texts.page(10, encPlain, 8, []byte{0, 0, 0, 0x40, 1, 2, 3, 4}), word},
		"differences for ever":       {ints.page(10, encDeltaInts, 4, header(128, 4, math.MaxInt32, 0)), number},
		"a block of differences":     {ints.page(10, encDeltaInts, 4, header(1<<40, 4, 10, 0)), number},
		"lengths for ever":           {texts.page(10, encDeltaLengths, 4, header(128, 4, math.MaxInt32, 0)), word},
		"lengths of nothing":         {texts.page(10, encDeltaLengths, 4, append(header(1<<20, 1, 1<<30, 0), make([]byte, 4000)...)), word},
		"a length beyond the page":   {texts.page(10, encDeltaLengths, 5, header(128, 4, 1, 2<<20)), word},
		"a negative length":          {texts.page(10, encDeltaLengths, 5, header(128, 4, 1, 1)), word},
		"a prefix of nothing":        {texts.page(10, encDeltaBytes, 8, append(header(128, 4, 1, 4), header(128, 4, 1, 0)...)), word},
		"a dictionary for ever":      {texts.words(math.MaxInt32, 4, make([]byte, 4)).page(10, encDictionary, 2, []byte{1, 20}), word},
		"a word that is not there":   {texts.words(1, 4, make([]byte, 4)).page(10, encDictionary, 3, []byte{1, 20, 1}), word},
		"a word without dictionary":  {texts.page(10, encDictionary, 3, []byte{1, 20, 0}), word},
		"indices of 255 bits":        {texts.words(1, 4, make([]byte, 4)).page(10, encDictionary, 3, []byte{255, 20, 0}), word},
		"packed groups for ever": {texts.words(1, 4, make([]byte, 4)).page(10, encDictionary, 12,
			append([]byte{1}, binary.AppendUvarint(nil, math.MaxUint64)...)), word},
		"levels beyond the page": {forge{physical: integer32, optional: true, rows: 10}.page(10, encPlain, 8, []byte{255, 255, 255, 255, 0, 0, 0, 0}), number},
		"pages of nothing":       {forge{physical: integer32, rows: 10, pages: bytes.Repeat(forge{}.page(0, encPlain, 0, nil).pages, 1000)}, number},
	} {
		t.Run(name, func(t *testing.T) {
			data := c.file.bytes()
			var rows int
			var err error
			spent := allocated(func() { rows, err = firstRows(data, c.ask, 1000) })
			if err == nil || err == io.EOF || rows > 9 {
				t.Errorf("%d rows were read, then %v", rows, err)
			}
			if most := int64(16<<20 + 8*len(data)); spent > most { // a zstd window is 8 MiB
				t.Errorf("%d bytes were allocated for a file of %d, at most %d wanted", spent, len(data), most)
			}
		})
	}
}

// What the forge makes is read where it is honest: otherwise the test above would pass for the wrong reason.
func TestForgeIsFair(t *testing.T) {
	for name, f := range map[string]forge{
		"plain":  forge{physical: integer32, rows: 10}.page(10, encPlain, 40, make([]byte, 40)),
		"gzip":   forge{physical: integer32, rows: 10, codec: 2}.page(10, encPlain, 40, gzipZeros(t, 40)),
		"zstd":   forge{physical: integer32, rows: 10, codec: 6}.page(10, encPlain, 40, zstdZeros(t, 40)),
		"snappy": forge{physical: integer32, rows: 10, codec: 1}.page(10, encPlain, 40, snappy.Encode(nil, make([]byte, 40))),
		"run":    forge{physical: integer32, rows: 1000}.words(1, 4, make([]byte, 4)).page(1000, encDictionary, 4, []byte{1, 0xd0, 0x0f, 0}),
		"deltas": forge{physical: integer32, rows: 1}.page(1, encDeltaInts, 5, []byte{0x80, 1, 4, 1, 0}),
	} {
		if rows, err := firstRows(f.bytes(), []Column{{"x", Number}}, 2000); err != io.EOF || int64(rows) != f.rows {
			t.Errorf("%s: %d rows, then %v", name, rows, err)
		}
	}
}

func samples(t testing.TB) (files [][]byte, ask []Column) {
	t.Helper()
	columns := []parquettest.Column{{Name: "s", Node: library.Optional(library.Encoded(library.String(), &library.RLEDictionary))}, {Name: "n"}, {Name: "b"},
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
	for version, codec := range map[int]library.WriterOption{1: library.Compression(&library.Snappy), 2: library.Compression(&library.Gzip)} {
		data, err := parquettest.Encode(columns, rows, codec, library.DataPageVersion(version), library.MaxRowsPerRowGroup(12), library.DataPageStatistics(true))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, data)
	}
	return files, []Column{{"s", Word}, {"n", Number}, {"b", Any}, {"d", Number}, {"p", Word}}
}

// A file with a damaged byte, or one that ends early, never panics and never costs more than a sound one. A cut file is
// always an error: its footer is at its end.
func TestDamage(t *testing.T) {
	step := 17
	if deep.Run(t, "damage to every byte of a Parquet file") {
		step = 1
	}
	files, ask := samples(t)
	for _, data := range files {
		if rows, err := firstRows(data, ask, 1000); rows != 20 || err != io.EOF {
			t.Fatalf("%d rows, then %v", rows, err)
		}
		for n := 0; n < len(data); n += step {
			if _, err := firstRows(data[:n], ask, 1000); err == nil || err == io.EOF {
				t.Fatalf("the first %d of %d bytes are a file", n, len(data))
			}
		}
		bad := bytes.Clone(data)
		for i := 0; i < len(bad); i += step {
			spent := allocated(func() {
				for _, b := range []byte{0, 0xff, data[i] ^ 1} {
					bad[i] = b
					_, _ = firstRows(bad, ask, 1000)
				}
			})
			if bad[i] = data[i]; spent > 16<<20 {
				t.Errorf("damage to byte %d costs %d bytes", i, spent)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	files, ask := samples(f)
	for _, data := range files {
		f.Add(data)
	}
	f.Add(forge{physical: integer32, rows: 10}.page(10, encPlain, 40, make([]byte, 40)).bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, a := range [][]Column{ask, {{"x", Any}}} {
			if rows, err := firstRows(data, a, 1000); rows < 1000 && err == nil {
				t.Fatal("reading ended without a reason")
			}
		}
	})
}
