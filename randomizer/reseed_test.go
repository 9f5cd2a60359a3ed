package randomizer

import (
	"slices"
	"testing"
)

// Copies of a process go on with one generator between them, and draw the same; after Reseed they do not. A generator
// that was given is a replay's and stays.
func TestReseedEndsARepetition(t *testing.T) {
	p := Params{Dim: 64, ClipNorm: 1, Levels: 4, Trials: 40, Coin: Fair}
	clones := func(given bool) (out [2]*VectorSum) {
		for i := range out {
			v, err := NewVectorSum(p, nil)
			if err != nil {
				t.Fatal(err)
			}
			v.own.Seed([32]byte{1})
			if given {
				v.own = nil
			}
			out[i] = v
		}
		return out
	}
	x := make([]float64, p.Dim)
	same := func(of [2]*VectorSum) bool {
		var counts [2][]uint32
		for i, v := range of {
			var err error
			if counts[i], err = v.Encode(nil, x); err != nil {
				t.Fatal(err)
			}
		}
		return slices.Equal(counts[0], counts[1])
	}
	both, replay := clones(false), clones(true)
	if !same(both) {
		t.Fatal("copies differ before they are seeded anew: the test is wrong")
	}
	for i := range both {
		both[i].Reseed()
		replay[i].Reseed()
	}
	if same(both) {
		t.Error("copies draw the same 64 counts after Reseed")
	}
	if !same(replay) {
		t.Error("Reseed changed a generator that was given")
	}
}
