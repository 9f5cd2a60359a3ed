package randomizer

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

var update = flag.Bool("update", false, "rewrite "+goldenFile)

const goldenFile = "../docs/vectors/randomizer.json"

// A word is 64 random bits, in the file 16 hexadecimal digits, most significant first.
type word uint64

func (w word) MarshalText() ([]byte, error) {
	return hex.AppendEncode(nil, []byte{byte(w >> 56), byte(w >> 48), byte(w >> 40), byte(w >> 32), byte(w >> 24),
		byte(w >> 16), byte(w >> 8), byte(w)}), nil
}

func (w *word) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	*w = word(n)
	return err
}

// A tape plays words, then goes on with a generator, and notes all that was drawn.
type tape struct {
	words []word
	next  rand.Source // nil: nothing follows
	drawn []word
}

func (s *tape) Uint64() uint64 {
	var w word
	switch {
	case len(s.drawn) < len(s.words):
		w = s.words[len(s.drawn)]
	case s.next == nil:
		panic("randomizer: more words drawn than the vector has")
	default:
		w = word(s.next.Uint64())
	}
	s.drawn = append(s.drawn, w)
	return uint64(w)
}

// A vector is one entry of the golden file, for clients in other languages (docs/how-to/clients.md). Words are all
// that Draw draws: the output of ChaCha8 (as in the C2SP specification) for the seed, or chosen words if there is
// none. Counts are the result of Draw, and packed is the report. A report about several units has their vectors
// instead of x, and the position of their sum.
type vector struct {
	Name      string      `json:"name"`
	Dim       int         `json:"dim"`
	ClipNorm  float64     `json:"clip_norm"`
	Levels    uint32      `json:"levels"`
	Trials    uint32      `json:"trials"`
	Units     uint64      `json:"units,omitempty"`
	Minimizer bool        `json:"minimizer,omitempty"`
	Window    uint32      `json:"window,omitempty"`
	Coin      uint32      `json:"coin"`
	Seed      string      `json:"chacha8_seed,omitempty"`
	Words     []word      `json:"words"`
	X         []float64   `json:"x,omitempty"`
	Of        [][]float64 `json:"unit_vectors,omitempty"`
	Position  []int64     `json:"position"`
	Counts    []uint32    `json:"counts"`
	Packed    string      `json:"packed"`
}

func (g *vector) params() Params {
	return Params{Dim: g.Dim, ClipNorm: g.ClipNorm, Levels: g.Levels, Trials: g.Trials, Units: g.Units,
		Minimizer: g.Minimizer, Window: g.Window, Coin: Coin(g.Coin)}
}

func goldenInputs() []vector {
	seed := hex.EncodeToString([]byte("panlearn golden vectors, 32 byte"))
	long := []float64{1e300, -1e300, 0, 5e-324, 1, 3e299, -2e299, 7e299, 1.1e299, -6e299, 9e299, 4e299, -5e299}
	all := []vector{
		{Name: "one word for rounding and trials", Dim: 4, ClipNorm: 1, Levels: 12, Trials: 9, Coin: 1 << 23, Seed: seed,
			X: []float64{0.5, -0.5, 0.25, 0}},
		{Name: "forty trials", Dim: 3, ClipNorm: 2, Levels: 64, Trials: 40, Coin: 1 << 23, Seed: seed,
			X: []float64{3, -4, 0}},
		{Name: "no trials", Dim: 3, ClipNorm: 1, Levels: 1, Trials: 0, Coin: 1 << 23, Seed: seed, X: []float64{0.125, -0.75,
			0.5}},
		{Name: "a word of trials", Dim: len(long), ClipNorm: 1, Levels: 100, Trials: 64, Coin: 1 << 23, Seed: seed, X: long},
		{Name: "several words of trials", Dim: 2, ClipNorm: 1, Levels: 100, Trials: 200, Coin: 1 << 23, Seed: seed,
			X: []float64{0.6, 0.8}},
		{Name: "lanes", Dim: 3, ClipNorm: 1, Levels: 5, Trials: 7, Coin: 0x2aaaab, Seed: seed, X: []float64{-1, -1, -1}},
		{Name: "table", Dim: 3, ClipNorm: 0.5, Levels: 7, Trials: 5000, Coin: 0x123456, Seed: seed, X: []float64{0.3, 0.1,
			-0.2}},
		{Name: "table, fair", Dim: 3, ClipNorm: 0.5, Levels: 1 << 20, Trials: 1 << 20, Coin: 1 << 23, Seed: seed,
			X: []float64{0.3, 0.1, -0.2}},
		{Name: "nothing to clip, odd levels", Dim: 5, ClipNorm: 1, Levels: 7, Trials: 0, Coin: 1 << 23, Seed: seed,
			X: []float64{1, 0, 0, 0, 0}},
		{Name: "outside the ball by a rounding error, and pulled inwards", Dim: 2, ClipNorm: 1, Levels: 1 << 30, Trials: 0,
			Coin: 1 << 23, Seed: seed,
			X: []float64{1, 8.0 / 7}},
	}
	// The first word lies where an outcome ends, so that a second one decides.
	table := vector{Dim: 1, ClipNorm: 1, Levels: 2, Trials: 5000, Coin: 0x123456, X: []float64{0}}
	at := newInversion(uint64(table.Trials), Coin(table.Coin), defaultPrecision)
	edge := word(at.hi[len(at.hi)/2])
	table.Name, table.Words = "table, the second word decides for the lower outcome", []word{0, edge, 0}
	all = append(all, table)
	table.Name, table.Words = "table, the second word decides for the higher outcome", []word{0, edge, ^word(0)}
	all = append(all, table)
	three := [][]float64{{0.5, -0.25, 3}, {1e300, 0, -1e300}, {0.6, 0.8, 0}}
	return append(all,
		vector{Name: "three units", Dim: 3, ClipNorm: 1, Levels: 100, Trials: 30, Units: 3, Coin: 1 << 23, Seed: seed,
			Of: three},
		vector{Name: "three units, a window", Dim: 3, ClipNorm: 1, Levels: 100, Trials: 30, Units: 3, Window: 44,
			Coin: 1 << 23, Seed: seed, Of: three},
		vector{Name: "three units in the place of a hundred, a window", Dim: 3, ClipNorm: 2, Levels: 1001, Trials: 3000,
			Units: 100, Window: 500,
			Coin: 1 << 23, Seed: seed, Of: three},
		vector{Name: "a minimiser over a hundred units, a window", Dim: 3, ClipNorm: 2, Levels: 1001, Trials: 3000,
			Units: 100, Minimizer: true, Window: 500,
			Coin: 1 << 23, Seed: seed, X: []float64{1.25, -0.0625, 3}},
		vector{Name: "one unit, a window", Dim: 4, ClipNorm: 1, Levels: 12, Trials: 50, Window: 60, Coin: 1 << 23, Seed: seed,
			X: []float64{0.5, -0.5, 0.25, 0}},
		vector{Name: "both ends of the window", Dim: 2, ClipNorm: 1, Levels: 2, Trials: 8, Units: 2, Window: 2, Coin: 1 << 23,
			Words: []word{0, ^word(0)}, Of: [][]float64{{-1, 0}, {0, 1}}},
		vector{Name: "units of one step each", Dim: 2, ClipNorm: 1, Levels: 1, Trials: 2, Units: 1 << 23, Coin: 1 << 23,
			Seed: seed,
			Of:   [][]float64{{-1, 0}, {0.99, 0}, {0, 7}}})
}

func (g *vector) fill(t *testing.T) {
	t.Helper()
	p := g.params()
	entropy := &tape{words: g.Words}
	if g.Seed != "" {
		seed, err := hex.DecodeString(g.Seed)
		if err != nil || len(seed) != 32 {
			t.Fatalf("%s: seed %q", g.Name, g.Seed)
		}
		entropy = &tape{next: rand.NewChaCha8([32]byte(seed))}
	}
	v, err := NewVectorSum(p, entropy)
	if err != nil {
		t.Fatal(err)
	}
	of := g.Of
	if of == nil {
		of = [][]float64{g.X}
	}
	for _, x := range of {
		if err := v.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	g.Position = slices.Clone(v.place)
	g.Counts = v.Draw(nil)
	g.Words = entropy.drawn
	g.Packed = hex.EncodeToString(p.Pack(nil, g.Counts))
}

func TestGoldenVectors(t *testing.T) {
	want := goldenInputs()
	for i := range want {
		given := slices.Clone(want[i].Words)
		want[i].fill(t)
		if want[i].Seed == "" && !slices.Equal(given, want[i].Words) {
			t.Errorf("%s: drew %d words of %d", want[i].Name, len(want[i].Words), len(given))
		}
	}
	text, err := json.MarshalIndent(want, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile(goldenFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	var stored []vector
	if err := json.Unmarshal(file, &stored); err != nil {
		t.Fatal(err)
	}
	for _, g := range stored {
		got := g
		got.fill(t)
		if !slices.Equal(got.Words, g.Words) || !slices.Equal(got.Counts, g.Counts) || got.Packed != g.Packed ||
			!slices.Equal(got.Position, g.Position) {
			t.Errorf("%s: counts %v packed %s, stored %v and %s", g.Name, got.Counts, got.Packed, g.Counts, g.Packed)
		}
	}
	if !bytes.Equal(file, text) {
		t.Errorf("%s is not what the inputs give; look at the difference after go test -run Golden -update", goldenFile)
	}
}
