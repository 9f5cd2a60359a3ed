package source

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"testing"

	library "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/parquettest"
)

// A trial is a column of a kind: how the library writes it, a random value of it, and the text that we should read.
type trial struct {
	name      string
	node      func() library.Node
	encodings []encoding.Encoding
	read      kind
	draw      func(*rapid.T) (any, string)
}

var (
	ofInts    = []encoding.Encoding{&library.Plain, &library.RLEDictionary, &library.DeltaBinaryPacked}
	ofFloats  = []encoding.Encoding{&library.Plain, &library.RLEDictionary, &library.ByteStreamSplit}
	ofStrings = []encoding.Encoding{&library.Plain, &library.RLEDictionary, &library.DeltaLengthByteArray,
		&library.DeltaByteArray}
)

func leaf(t library.Type) func() library.Node {
	return func() library.Node { return library.Leaf(t) }
}

var trials = []trial{
	{"boolean as number", leaf(library.BooleanType), []encoding.Encoding{&library.Plain, &library.RLE}, number,
		func(t *rapid.T) (any, string) {
			v := rapid.Bool().Draw(t, "v")
			return v, map[bool]string{false: "0", true: "1"}[v]
		}},
	{"boolean as word", leaf(library.BooleanType), []encoding.Encoding{&library.Plain, &library.RLE}, word,
		func(t *rapid.T) (any, string) {
			v := rapid.Bool().Draw(t, "v")
			return v, strconv.FormatBool(v)
		}},
	{"int32", leaf(library.Int32Type), ofInts, number, func(t *rapid.T) (any, string) {
		v := rapid.Int32().Draw(t, "v")
		return v, fmt.Sprint(v)
	}},
	{"int64", leaf(library.Int64Type), ofInts, word, func(t *rapid.T) (any, string) {
		v := rapid.Int64().Draw(t, "v")
		return v, fmt.Sprint(v)
	}},
	{"uint32", func() library.Node { return library.Uint(32) }, ofInts, number, func(t *rapid.T) (any, string) {
		v := rapid.Uint32().Draw(t, "v")
		return int32(v), fmt.Sprint(v)
	}},
	{"uint64", func() library.Node { return library.Uint(64) }, ofInts, either, func(t *rapid.T) (any, string) {
		v := rapid.Uint64().Draw(t, "v")
		return int64(v), fmt.Sprint(v)
	}},
	{"decimal", func() library.Node { return library.Decimal(3, 9, library.Int32Type) }, ofInts, number,
		func(t *rapid.T) (any, string) {
			v := rapid.Int32().Draw(t, "v")
			return v, fmt.Sprintf("%de-3", v)
		}},
	{"float", leaf(library.FloatType), ofFloats, number, func(t *rapid.T) (any, string) {
		v := rapid.Float32().Draw(t, "v")
		return v, strconv.FormatFloat(float64(v), 'g', -1, 64)
	}},
	{"double", leaf(library.DoubleType), ofFloats, either, func(t *rapid.T) (any, string) {
		v := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.Inf(1), math.NaN(), 1, 0})).Draw(t, "v")
		return v, strconv.FormatFloat(v, 'g', -1, 64)
	}},
	{"string", library.String, ofStrings, word, randomWord},
	{"bytes", leaf(library.ByteArrayType), ofStrings, either, randomWord},
	{"enum", library.Enum, ofStrings, word, randomWord},
}

func randomWord(t *rapid.T) (any, string) {
	v := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"Private", "Private-house", "", "Pri"})).Draw(t, "v")
	return v, v
}

// TestReadsWhatTheLibraryWrites: all that the library writes, in every type, encoding, compression, version and
// size of pages and groups, is read back as text.
func TestReadsWhatTheLibraryWrites(t *testing.T) {
	codecs := []library.WriterOption{library.Compression(&library.Uncompressed), library.Compression(&library.Snappy),
		library.Compression(&library.Gzip), library.Compression(&library.Zstd)}
	rapid.Check(t, func(t *rapid.T) {
		chosen := rapid.SliceOfN(rapid.SampledFrom(trials), 1, 5).Draw(t, "columns")
		n := rapid.IntRange(0, 200).Draw(t, "rows")
		var columns []parquettest.Column
		var ask []wanted
		rows, want := make([][]any, n), make([][]string, n)
		for i, c := range chosen {
			node := library.Encoded(c.node(), rapid.SampledFrom(c.encodings).Draw(t, "encoding"))
			optional := rapid.Bool().Draw(t, "optional")
			if optional {
				node = library.Optional(node)
			}
			name := fmt.Sprintf("%c%d %s", 'z'-i, i, c.name) // the file has them in another order
			columns = append(columns, parquettest.Column{Name: name, Node: node})
			ask = append(ask, wanted{name, c.read})
			few := rapid.IntRange(1, 20).Draw(t, "distinct")
			type pair struct {
				v    any
				text string
			}
			var pool []pair
			for range few {
				v, text := c.draw(t)
				pool = append(pool, pair{v, text})
			}
			run := rapid.IntRange(1, 40).Draw(t, "run")
			for r := range n {
				p := pool[r/run%few]
				if optional && r%7 < rapid.IntRange(0, 7).Draw(t, "null") {
					p = pair{}
				}
				rows[r], want[r] = append(rows[r], p.v), append(want[r], p.text)
			}
		}
		data, err := parquettest.Encode(columns, rows, rapid.SampledFrom(codecs).Draw(t, "codec"),
			library.DataPageVersion(rapid.IntRange(1, 2).Draw(t, "version")),
			library.PageBufferSize(rapid.SampledFrom([]int{64, 256 << 10}).Draw(t, "page")),
			library.MaxRowsPerRowGroup(int64(rapid.SampledFrom([]int{3, 50, 1000}).Draw(t, "group"))))
		if err != nil {
			t.Fatal(err)
		}
		got, err := tableOf(data, ask)
		if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("got\n%q, %v, want\n%q", got, err, want)
		}
	})
}

// tableOf reads a whole file.
func tableOf(data []byte, ask []wanted) ([][]string, error) {
	r, err := openColumns(bytes.NewReader(data), int64(len(data)), ask)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.close() }()
	var out [][]string
	for {
		if err := r.read(); err == io.EOF {
			return out, nil
		} else if err != nil {
			return out, err
		}
		out = append(out, slices.Clone(r.values))
	}
}
