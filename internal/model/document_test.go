package model

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	memory "runtime"
	"strings"
	"testing"
)

// nothing is so many zeros to read.
type nothing int64

func (z *nothing) Read(p []byte) (int, error) {
	if *z == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), int64(*z))
	clear(p[:n])
	*z -= nothing(n)
	return int(n), nil
}

// packed returns a container of packed entries.
func packed(t *testing.T, entries map[string]io.Reader) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for name, from := range entries {
		w, err := archive.Create(name)
		if err == nil {
			_, err = io.Copy(w, from)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestSmallFilesTakeLittle: a file of a model that unpacks, or decodes, into far more than its declaration needs is
// refused before that takes memory: arrays and metadata of containers, lists of JSON documents, also those of a key
// that comes twice or is spelt otherwise.
func TestSmallFilesTakeLittle(t *testing.T) {
	good, _ := released(t, parsed(t, words), 1, 2, 3, 4)
	whole := string(encoded(t, good))
	about, err := plainJSON(metadata{Snapshot: good}, "")
	if err != nil {
		t.Fatal(err)
	}
	array := func(n int64) io.Reader {
		begin := appendNPY(nil, nil, int(n))
		body := nothing(8 * n)
		return io.MultiReader(bytes.NewReader(begin), &body)
	}
	const large, many = 1 << 25, 1 << 21
	lists := map[string]string{
		"features":  `"features":[` + strings.Repeat("{},", many) + `{}],`,
		"FEATURES":  `"FEATURES":[` + strings.Repeat("{},", many) + `{}],`,
		"weights":   `"weights":[` + strings.Repeat("0,", many) + `0],`,
		"rows":      `"weights":[[` + strings.Repeat("0],[", many) + `0]],`,
		"intercept": `"intercept":[` + strings.Repeat("0,", many) + `0],`,
		"classes":   `"classes":[` + strings.Repeat(`"",`, many) + `""],`,
	}
	bombs := map[string][]byte{
		"packed weights": packed(t, map[string]io.Reader{npzWeights: array(large), npzIntercept: array(1),
			npzMetadata: bytes.NewReader(about)}),
		"packed intercept": packed(t, map[string]io.Reader{npzWeights: array(3), npzIntercept: array(large),
			npzMetadata: bytes.NewReader(about)}),
		"packed metadata": packed(t, map[string]io.Reader{npzWeights: array(3), npzIntercept: array(1),
			npzMetadata: io.MultiReader(strings.NewReader(strings.Repeat(" ", 8*large)), bytes.NewReader(about))}),
	}
	for name, list := range lists {
		bombs["first "+name] = []byte("{" + list + whole[1:])
		bombs["last "+name] = []byte(strings.TrimSuffix(strings.TrimSpace(whole), "}") + "," + strings.TrimSuffix(list, ",") +
			"}")
	}
	for name, bomb := range bombs {
		var before, after memory.MemStats
		memory.ReadMemStats(&before)
		s, err := Parse(bomb)
		if err == nil {
			_, err = NewPredictor(s, "")
		}
		memory.ReadMemStats(&after)
		// All that was allocated, freed or not: a few copies of the file, and of metadata a few times maxRatio of it.
		most := 8*uint64(len(bomb)) + 16<<20
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s: a file of %d bytes took %d, want at most %d", name, len(bomb), took, most)
		}
		if err == nil && !strings.HasPrefix(name, "first") { // which the good one after it replaces
			t.Errorf("%s: a model", name)
		}
	}
}

// TestElements: no list has more values than are counted, whatever its strings hold.
func TestElements(t *testing.T) {
	for doc, want := range map[string]bool{`null`: true, `[null]`: true, `[1, null ,2]`: true, `[[0,null]]`: true, `["null","n"]`: false,
		`[{"n":{"n":null}}]`: false, `[true,false,-1e5]`: false, `[]`: false} {
		if _, got := elements([]byte(doc), 2); got != want {
			t.Errorf("%s has null: %v, want %v", doc, got, want)
		}
	}
	for doc, want := range map[string][2]int{
		`[]`: {1, 1}, `[1,2]`: {2, 2}, `[[1,2],[3]]`: {2, 3}, `["a,b","\",",[1,2]]`: {3, 4}, `{"a":[1,2],"b":"]"}`: {2, 3},
		`7`: {1, 1},
	} {
		one, _ := elements([]byte(doc), 1)
		two, _ := elements([]byte(doc), 2)
		if got := [2]int{one, two}; got != want {
			t.Errorf("%s has %v, want %v", doc, got, want)
		}
	}
}

// TestNullAndNaNAreNoWeights: a document with null, which would decode to 0, and an array with NaN are no models.
func TestNullAndNaNAreNoWeights(t *testing.T) {
	good, _ := released(t, parsed(t, words), 1, 2, 3, 4)
	whole := strings.TrimSuffix(strings.TrimSpace(string(encoded(t, good))), "}")
	for _, part := range []string{`"weights":null`, `"weights":[1,null,3]`, `"weights":[[1,2,null]]`, `"weights":[null,null,null]`,
		`"intercept":null`, `"intercept":[null]`, `"features":[null,null,null]`, `"classes":["a",null]`} {
		if _, err := Parse([]byte(whole + "," + part + "}")); err == nil || !strings.Contains(err.Error(), "null, want a value") {
			t.Errorf("%s: %v", part, err)
		}
	}
	if _, err := Parse([]byte(whole + `,"weights":[1,2,3]}`)); err != nil {
		t.Errorf("numbers: %v", err)
	}
	for _, x := range []float64{math.NaN(), math.Inf(-1)} {
		bad := good
		bad.Weights = Rows{{1, x, 3}}
		file, err := bad.NumPy()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(file); err == nil || !strings.Contains(err.Error(), "not finite") {
			t.Errorf("%v: %v", x, err)
		}
	}
}

// TestShapesThatLie: an array that says another number of entries than it has is refused, and so is one that says
// none that can be.
func TestShapesThatLie(t *testing.T) {
	good, _ := released(t, parsed(t, words), 1, 2, 3, 4)
	about, err := plainJSON(metadata{Snapshot: good}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, shape := range []int{0, 2, 4, math.MaxInt32} {
		body := binary.LittleEndian.AppendUint64(nil, 0)
		_, err := Parse(packed(t, map[string]io.Reader{npzMetadata: bytes.NewReader(about),
			npzIntercept: bytes.NewReader(appendNPY(nil, []float64{1})),
			npzWeights:   bytes.NewReader(append(appendNPY(nil, nil, shape), bytes.Repeat(body, 3)...))}))
		if err == nil || !strings.Contains(fmt.Sprint(err), npzWeights) {
			t.Errorf("%d of 3: %v", shape, err)
		}
	}
}
