package randomizer

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestDecodeCentre(t *testing.T) {
	p := Params{Dim: 3, ClipNorm: 2, Levels: 4, Trials: 10, Coin: Fair}
	// 5 users at the centre: 5 (g/2 + b p) = 35; one lattice step is 2L/g = 1.
	got, err := p.Decode(nil, []uint64{35, 36, 15}, 5, 50)
	if err != nil || !slices.Equal(got, []float64{0, 1, -20}) {
		t.Errorf("decoded %v, %v; want 0, 1, -20", got, err)
	}
}

// Against rationals: one rounding at the end and the rounding of the unit.
func TestDecodeIsExactUpToOneRounding(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := Params{Dim: 1, ClipNorm: 1,
			Levels: rapid.Uint32Range(1, MaxLevels).Draw(rt, "g"),
			Coin:   Coin(rapid.Uint32Range(1, 1<<CoinBits-1).Draw(rt, "coin"))}
		users := rapid.Uint64Range(1, 1<<32).Draw(rt, "users")
		noise := rapid.Uint64Range(0, 1<<62-1).Draw(rt, "noise")
		total := rapid.Uint64Range(0, users*uint64(p.Levels)+noise).Draw(rt, "total")
		got, err := p.Decode(nil, []uint64{total}, users, noise)
		if err != nil {
			rt.Fatal(err)
		}
		r := func(v uint64) *big.Rat { return new(big.Rat).SetInt(new(big.Int).SetUint64(v)) }
		want := r(total)
		want.Sub(want, new(big.Rat).Mul(r(noise), big.NewRat(int64(p.Coin), 1<<CoinBits)))
		want.Mul(want, big.NewRat(2, int64(p.Levels)))
		want.Sub(want, r(users))
		w, _ := want.Float64()
		if math.Abs(got[0]-w) > 4e-16*math.Abs(w)+0x1p-1000 {
			rt.Fatalf("decoded %v, want %v", got[0], w)
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	p := Params{Dim: 2, ClipNorm: 1, Levels: 4, Trials: 3, Coin: Fair}
	for name, c := range map[string]struct {
		totals       []uint64
		users, noise uint64
	}{
		"no totals":         {nil, 5, 15},
		"too many totals":   {[]uint64{1, 1, 1}, 5, 15},
		"no users":          {[]uint64{0, 0}, 0, 15},
		"impossible total":  {[]uint64{35, 36}, 5, 15},
		"users overflow":    {[]uint64{1, 1}, math.MaxUint64, 15},
		"trials overflow":   {[]uint64{1, 1}, 5, math.MaxUint64},
		"totals above 2^63": {[]uint64{1, 1}, 1 << 61, 15},
	} {
		if got, err := p.Decode(nil, c.totals, c.users, c.noise); err == nil {
			t.Errorf("%s: decoded %v", name, got)
		}
	}
	if _, err := p.Decode(nil, []uint64{35, 0}, 5, 15); err != nil {
		t.Errorf("the extreme totals are possible: %v", err)
	}
}
