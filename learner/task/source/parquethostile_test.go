package source

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
	library "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/parquettest"
)

// allocated says how many bytes f allocates in all.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

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

func gzipZeros(t *testing.T, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A file that says more than it holds is refused before memory is spent on what it says. What is said inside a page, by
// runs, differences and gzip streams, is not here: the library believes it.
func TestParquetHostileSizes(t *testing.T) {
	ints := forge{physical: format.Int32, rows: 10}
	texts := forge{physical: format.ByteArray, rows: 10}
	honest := ints.page(10, format.Plain, 40, make([]byte, 40))
	numbers, words := []wanted{{"x", number}}, []wanted{{"x", word}}
	changed := func(change func(*format.FileMetaData)) forge { f := honest; f.change = change; return f }
	footer := func(head string, tail ...byte) forge { return forge{footer: append([]byte(head), tail...)} }
	packed := func(codec format.CompressionCodec, size int32, body []byte) forge {
		f := ints
		f.codec = codec
		return f.page(10, format.Plain, size, body)
	}
	v2 := func(h format.DataPageHeaderV2) forge {
		p := format.PageHeader{Type: format.DataPageV2, UncompressedPageSize: 40, CompressedPageSize: 40}
		p.DataPageHeaderV2.V, p.DataPageHeaderV2.Valid = h, true
		return ints.add(p, make([]byte, 40))
	}
	many := binary.AppendUvarint(nil, math.MaxInt32)
	for name, c := range map[string]struct {
		file forge
		ask  []wanted
	}{
		// Footers by hand: 0x15 is an integer, 0x19 a list and 0x1c a structure in the field after the one before.
		"two thousand million columns": {footer("\x15\x02\x19\xfc", many...), numbers},
		"a list of lists":              {footer("\x15\x02\x19\x19\x19\x19"), numbers},
		"structures for ever":          {forge{footer: bytes.Repeat([]byte{0x1c}, 1<<23)}, numbers},
		"unknown structures for ever":  {forge{footer: append([]byte{0x0c, 0x80, 0x01}, bytes.Repeat([]byte{0x1c}, 1<<23)...)}, numbers},
		"unknown lists of lists":       {forge{footer: append([]byte{0x09, 0x80, 0x01}, bytes.Repeat([]byte{0x19}, 1<<23)...)}, numbers},
		"a map for ever":               {footer("\x0b\x80\x01", append(many, 0xcc)...), numbers},
		"more children than elements": {changed(func(m *format.FileMetaData) {
			m.Schema[0].NumChildren.V = math.MaxInt32
		}), numbers},
		"a leaf with children": {changed(func(m *format.FileMetaData) {
			m.Schema[1].NumChildren.V, m.Schema[1].NumChildren.Valid = 1, true
		}), numbers},
		"groups in groups": {changed(func(m *format.FileMetaData) {
			group := format.SchemaElement{Name: "g"}
			group.NumChildren.V, group.NumChildren.Valid = 1, true
			leaf := m.Schema[1]
			m.Schema = nil
			for range 1 << 15 {
				m.Schema = append(m.Schema, group)
			}
			m.Schema = append(m.Schema, leaf)
		}), numbers},
		"leaves without chunks": {changed(func(m *format.FileMetaData) {
			for range 1 << 14 {
				m.Schema = append(m.Schema, m.Schema[1])
				m.RowGroups = append(m.RowGroups, format.RowGroup{})
			}
			m.Schema[0].NumChildren.V += 1 << 14
		}), numbers},
		"rows of no group":             {changed(func(m *format.FileMetaData) { m.NumRows = 1 << 60 }), numbers},
		"fewer rows than none":         {changed(func(m *format.FileMetaData) { m.NumRows, m.RowGroups[0].NumRows = -1, -1 }), numbers},
		"a chunk beyond the file":      {changed(func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.TotalCompressedSize = 1 << 40 }), numbers},
		"a chunk before the file":      {changed(func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.DataPageOffset = -4 }), numbers},
		"a chunk without end":          {changed(func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.TotalCompressedSize = -1 }), numbers},
		"another type than the schema": {changed(func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.Type = format.Double }), numbers},
		"more values than rows":        {changed(func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.NumValues = 11 }), numbers},
		"sorted by no column": {changed(func(m *format.FileMetaData) {
			m.RowGroups[0].SortingColumns = []format.SortingColumn{{ColumnIdx: 7}}
		}), numbers},
		"a decimal without length": {changed(func(m *format.FileMetaData) {
			m.Schema[1].Type.V, m.Schema[1].LogicalType.Value = format.FixedLenByteArray, &format.DecimalType{}
		}), numbers},
		"a page of two gigabytes":    {ints.page(10, format.Plain, math.MaxInt32, make([]byte, 40)), numbers},
		"a negative page":            {ints.page(10, format.Plain, -1, make([]byte, 40)), numbers},
		"more values than the chunk": {ints.page(11, format.Plain, 44, make([]byte, 44)), numbers},
		"less than no values":        {ints.page(-1, format.Plain, 44, make([]byte, 44)), numbers},
		"fewer pages than rows":      {ints.page(9, format.Plain, 36, make([]byte, 36)), numbers},
		"pages of nothing":           {forge{physical: format.Int32, rows: 10, pages: bytes.Repeat(forge{}.page(0, format.Plain, 0, nil).pages, 1000)}, numbers},
		"a page of no type":          {ints.add(format.PageHeader{CompressedPageSize: 40, UncompressedPageSize: 40}, make([]byte, 40)), numbers},
		"levels longer than a page":  {v2(format.DataPageHeaderV2{NumValues: 10, NumRows: 10, DefinitionLevelsByteLength: 41}), numbers},
		"levels of negative length":  {v2(format.DataPageHeaderV2{NumValues: 10, NumRows: 10, DefinitionLevelsByteLength: -1, RepetitionLevelsByteLength: 1}), numbers},
		"levels that overflow":       {v2(format.DataPageHeaderV2{NumValues: 10, NumRows: 10, DefinitionLevelsByteLength: math.MaxInt32, RepetitionLevelsByteLength: 9}), numbers},
		"more nulls than values":     {v2(format.DataPageHeaderV2{NumValues: 10, NumRows: 10, NumNulls: 11}), numbers},
		"snappy of four gigabytes":   {packed(format.Snappy, 40, binary.AppendUvarint(nil, math.MaxUint32)), numbers},
		"snappy of another size":     {packed(format.Snappy, mostPage, snappy.Encode(nil, make([]byte, 40))), numbers},
		"zstd of a gigabyte":         {packed(format.Zstd, 40, append(bytes.Clone(zstdMagic), 0xa0, 0, 0, 0, 0x40, 1, 0, 0)), numbers},
		"zstd of many zeros":         {packed(format.Zstd, 40, zstdOf(t, make([]byte, 64<<20))), numbers},
		"not gzip":                   {packed(format.Gzip, 40, make([]byte, 40)), numbers},
		"a string of a gigabyte":     {texts.page(10, format.Plain, 8, []byte{0, 0, 0, 0x40, 1, 2, 3, 4}), words},
		"a dictionary for ever":      {texts.words(math.MaxInt32, 4, make([]byte, 4)).page(10, format.RLEDictionary, 2, []byte{1, 20}), words},
		"a word that is not there":   {texts.words(1, 4, make([]byte, 4)).page(10, format.RLEDictionary, 3, []byte{1, 20, 1}), words},
		"a word without dictionary":  {texts.page(10, format.RLEDictionary, 3, []byte{1, 20, 0}), words},
		"indices of 255 bits":        {texts.words(1, 4, make([]byte, 4)).page(10, format.RLEDictionary, 3, []byte{255, 20, 0}), words},
		"packed groups for ever": {texts.words(1, 4, make([]byte, 4)).page(10, format.RLEDictionary, 12,
			append([]byte{1}, binary.AppendUvarint(nil, math.MaxUint64)...)), words},
		"levels beyond the page":   {forge{physical: format.Int32, optional: true, rows: 10}.page(10, format.Plain, 8, []byte{255, 255, 255, 255, 0, 0, 0, 0}), numbers},
		"a length beyond the page": {texts.page(10, format.DeltaLengthByteArray, 5, []byte{0x80, 1, 4, 1, 0xff, 0xff, 3}), words},
		"a block of differences":   {ints.page(10, format.DeltaBinaryPacked, 4, append(binary.AppendUvarint(nil, 1<<40), 4, 10, 0)), numbers},
	} {
		t.Run(name, func(t *testing.T) {
			data := c.file.bytes()
			var rows int
			var err error
			spent := allocated(func() { rows, err = countRows(data, c.ask, 1000) })
			if err == nil || err == io.EOF || rows > 9 {
				t.Errorf("%d rows were read, then %v", rows, err)
			}
			if most := int64(2<<20 + 16*len(data)); spent > most {
				t.Errorf("%d bytes were allocated for a file of %d, at most %d wanted: %v", spent, len(data), most, err)
			}
		})
	}
}

// What the forge makes is read where it is honest: otherwise the test above would pass for the wrong reason.
func TestForgeIsFair(t *testing.T) {
	ints := func(codec format.CompressionCodec, body []byte) forge {
		return forge{physical: format.Int32, rows: 10, codec: codec}.page(10, format.Plain, 40, body)
	}
	for name, f := range map[string]forge{
		"plain":  ints(format.Uncompressed, make([]byte, 40)),
		"gzip":   ints(format.Gzip, gzipZeros(t, 40)),
		"zstd":   ints(format.Zstd, zstdOf(t, make([]byte, 40))),
		"snappy": ints(format.Snappy, snappy.Encode(nil, make([]byte, 40))),
		"run":    forge{physical: format.Int32, rows: 1000}.words(1, 4, make([]byte, 4)).page(1000, format.RLEDictionary, 4, []byte{1, 0xd0, 0x0f, 0}),
		"deltas": forge{physical: format.Int32, rows: 1}.page(1, format.DeltaBinaryPacked, 5, []byte{0x80, 1, 4, 1, 0}),
	} {
		if rows, err := countRows(f.bytes(), []wanted{{"x", number}}, 2000); err != io.EOF || int64(rows) != f.rows {
			t.Errorf("%s: %d rows, then %v", name, rows, err)
		}
	}
}

// An error names the column and nothing of what a page holds, although the library's would: the length of a string
// that is not there is bytes of a row.
func TestParquetErrorsKeepContentsBack(t *testing.T) {
	f := forge{physical: format.ByteArray, rows: 1}.page(1, format.Plain, 6, []byte("secret"))
	_, err := countRows(f.bytes(), []wanted{{"x", word}}, 1)
	if err == nil || err.Error() != `column "x": damaged, or not as the format has it` {
		t.Errorf("got %v", err)
	}
}

func damageable(t testing.TB, version int, codec library.WriterOption) ([]byte, []wanted) {
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
	data, err := parquettest.Encode(columns, rows, codec, library.DataPageVersion(version), library.MaxRowsPerRowGroup(12))
	if err != nil {
		t.Fatal(err)
	}
	return data, []wanted{{"s", word}, {"n", number}, {"b", either}, {"d", number}, {"p", word}}
}

// A file that ends early is an error, at every byte: its footer is at its end. A file with a damaged byte is an error or
// has all of its rows; it never panics, and never costs much more than a sound one. The pages have checksums, as most
// writers make them.
func TestParquetDamageAnywhere(t *testing.T) {
	all := longtest.Run(t, "each of four kinds of damage at every byte: each byte has one of them")
	for version, codec := range map[int]library.WriterOption{1: library.Compression(&library.Snappy), 2: library.Compression(&library.Gzip)} {
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
			kinds := []byte{0, 0xff, data[i] ^ 1, data[i] ^ 0x80}
			if !all {
				kinds = kinds[(i+version)%4:][:1]
			}
			for _, b := range kinds {
				bad[i] = b
				spent := allocated(func() {
					if rows, err := countRows(bad, ask, 1000); err == io.EOF && rows != len(sound) {
						t.Errorf("byte %d as %#02x: %d rows", i, b, rows)
					}
				})
				if spent > 32<<20 {
					t.Errorf("byte %d as %#02x costs %d bytes", i, b, spent)
				}
			}
			bad[i] = data[i]
		}
	}
}

// Without checksums, damage may change values, but neither their number nor what can go on after it.
func TestParquetDamageWithoutChecksums(t *testing.T) {
	ints := forge{physical: format.Int32, optional: true, rows: 10}
	levels := []byte{2, 0, 0, 0, 20, 1}
	for name, f := range map[string]forge{
		"plain":  ints.page(10, format.Plain, 46, append(bytes.Clone(levels), make([]byte, 40)...)),
		"runs":   ints.words(2, 8, make([]byte, 8)).page(10, format.RLEDictionary, 9, append(bytes.Clone(levels), 1, 20, 1)),
		"deltas": ints.page(10, format.DeltaBinaryPacked, 16, append(bytes.Clone(levels), 0x80, 1, 4, 10, 0, 0, 0, 0, 0, 0)),
		"words": {physical: format.ByteArray, rows: 2, pages: forge{}.page(2, format.DeltaByteArray, 16,
			[]byte{0x80, 1, 4, 2, 0, 2, 0, 0, 0, 0, 0x80, 1, 4, 2, 2, 0, 0, 0, 0, 0, 'a', 'b'}).pages},
	} {
		t.Run(name, func(t *testing.T) {
			data, ask := f.bytes(), []wanted{{"x", either}}
			if rows, err := countRows(data, ask, 1000); err != io.EOF || int64(rows) != f.rows {
				t.Fatalf("%d rows, then %v", rows, err)
			}
			bad := bytes.Clone(data)
			for i := range bad {
				for bit := range 8 {
					bad[i] = data[i] ^ 1<<bit
					if rows, err := countRows(bad, ask, 1000); err == nil || err == io.EOF && int64(rows) != f.rows {
						t.Errorf("byte %d as %#02x: %d rows, then %v", i, bad[i], rows, err)
					}
				}
				bad[i] = data[i]
			}
		})
	}
}

// FuzzParquetFooter tries the checks that are ours, in front of the library. Pages are not fuzzed: two bytes of a page may
// be a run of 2³¹ values, which the library makes room for.
func FuzzParquetFooter(f *testing.F) {
	data, _ := damageable(f, 1, library.Compression(&library.Snappy))
	f.Add(data)
	f.Add(forge{physical: format.Int32, rows: 10}.page(10, format.Plain, 40, make([]byte, 40)).bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		file, end, err := openParquet(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for _, c := range file.Root().Columns() {
			for _, k := range []kind{number, word, either} {
				c, err := chooseColumn(file, wanted{c.Name(), k})
				if err != nil || c.checkChunks(end) != nil {
					continue
				}
				for i, g := range file.RowGroups() {
					_ = checkPages(bytes.NewReader(data), c.chunk(i), g.NumRows())
				}
			}
		}
	})
}
