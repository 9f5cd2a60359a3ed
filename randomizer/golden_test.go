package randomizer

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/vectorsum.json")

const goldenFile = "testdata/vectorsum.json"

// A vector of the golden file: for clients in other languages. The words are those that ChaCha8 (as in the C2SP
// specification) gives for the seed; counts are what Encode makes of them, and packed is the report.
type vector struct {
	Name     string    `json:"name"`
	Dim      int       `json:"dim"`
	ClipNorm float64   `json:"clip_norm"`
	Levels   uint32    `json:"levels"`
	Trials   uint32    `json:"trials"`
	Coin     uint32    `json:"coin"`
	Seed     string    `json:"chacha8_seed"`
	X        []float64 `json:"x"`
	Position []int64   `json:"position"`
	Counts   []uint32  `json:"counts"`
	Packed   string    `json:"packed"`
}

func goldenInputs() []vector {
	seed := hex.EncodeToString([]byte("panlearn golden vectors, 32 byte"))
	long := []float64{1e300, -1e300, 0, 5e-324, 1, 3e299, -2e299, 7e299, 1.1e299, -6e299, 9e299, 4e299, -5e299}
	return []vector{
		{Name: "one word for rounding and trials", Dim: 4, ClipNorm: 1, Levels: 12, Trials: 9, Coin: 1 << 23, Seed: seed, X: []float64{0.5, -0.5, 0.25, 0}},
		{Name: "forty trials", Dim: 3, ClipNorm: 2, Levels: 64, Trials: 40, Coin: 1 << 23, Seed: seed, X: []float64{3, -4, 0}},
		{Name: "no trials", Dim: 3, ClipNorm: 1, Levels: 1, Trials: 0, Coin: 1 << 23, Seed: seed, X: []float64{0.125, -0.75, 0.5}},
		{Name: "a word of trials", Dim: len(long), ClipNorm: 1, Levels: 100, Trials: 64, Coin: 1 << 23, Seed: seed, X: long},
		{Name: "several words of trials", Dim: 2, ClipNorm: 1, Levels: 100, Trials: 200, Coin: 1 << 23, Seed: seed, X: []float64{0.6, 0.8}},
		{Name: "lanes", Dim: 3, ClipNorm: 1, Levels: 5, Trials: 7, Coin: 0x2aaaab, Seed: seed, X: []float64{-1, -1, -1}},
		{Name: "table", Dim: 3, ClipNorm: 0.5, Levels: 7, Trials: 5000, Coin: 0x123456, Seed: seed, X: []float64{0.3, 0.1, -0.2}},
		{Name: "table, fair", Dim: 3, ClipNorm: 0.5, Levels: 1 << 20, Trials: 1 << 20, Coin: 1 << 23, Seed: seed, X: []float64{0.3, 0.1, -0.2}},
	}
}

func (g *vector) fill(t *testing.T) {
	t.Helper()
	p := Params{Dim: g.Dim, ClipNorm: g.ClipNorm, Levels: g.Levels, Trials: g.Trials, Coin: Coin(g.Coin)}
	seed, err := hex.DecodeString(g.Seed)
	if err != nil || len(seed) != 32 {
		t.Fatalf("%s: seed %q", g.Name, g.Seed)
	}
	v, err := NewVectorSum(p, rand.NewChaCha8([32]byte(seed)))
	if err != nil {
		t.Fatal(err)
	}
	g.Position = make([]int64, g.Dim)
	newBall(p).snap(g.Position, g.X)
	if g.Counts, err = v.Encode(nil, g.X); err != nil {
		t.Fatal(err)
	}
	g.Packed = hex.EncodeToString(p.Pack(nil, g.Counts))
}

func TestGoldenVectors(t *testing.T) {
	want := goldenInputs()
	for i := range want {
		want[i].fill(t)
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
		if !slices.Equal(got.Counts, g.Counts) || got.Packed != g.Packed || !slices.Equal(got.Position, g.Position) {
			t.Errorf("%s: counts %v packed %s, stored %v and %s", g.Name, got.Counts, got.Packed, g.Counts, g.Packed)
		}
	}
	if !bytes.Equal(file, text) {
		t.Errorf("%s is not what the inputs give; look at the difference after go test -run Golden -update", goldenFile)
	}
}
