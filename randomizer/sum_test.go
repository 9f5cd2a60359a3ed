package randomizer

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// CheckPacked accepts what Unpack accepts, and AddPacked adds what it answers.
func TestAddPackedIsUnpackAndAdd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := Params{ClipNorm: 1, Coin: Fair,
			Dim:    rapid.IntRange(1, 70).Draw(rt, "d"),
			Levels: rapid.OneOf(rapid.Uint32Range(1, 20), rapid.Uint32Range(1, 200), rapid.Uint32Range(1, MaxLevels)).Draw(rt, "g"),
			Trials: rapid.OneOf(rapid.Uint32Range(0, 20), rapid.Uint32Range(0, MaxTrials)).Draw(rt, "b")}
		counts := rapid.SliceOfN(rapid.Uint32Range(0, p.MaxCount()), p.Dim, p.Dim).Draw(rt, "counts")
		data := p.Pack(nil, counts)
		if rapid.Bool().Draw(rt, "damaged") {
			i := rapid.IntRange(0, len(data)-1).Draw(rt, "byte")
			data[i] ^= rapid.Byte().Draw(rt, "change")
		}
		before := rapid.SliceOfN(rapid.Uint64Range(0, 1<<62), p.Dim, p.Dim).Draw(rt, "sums")
		sums := slices.Clone(before)
		err := p.CheckPacked(data)
		counts, want := p.Unpack(nil, data)
		if (err == nil) != (want == nil) || err != nil && !errors.Is(err, ErrReportRange) {
			rt.Fatalf("CheckPacked says %v, Unpack %v", err, want)
		}
		if err != nil {
			return
		}
		p.AddPacked(sums, data)
		for j, c := range counts {
			if sums[j] != before[j]+uint64(c) {
				rt.Fatalf("sum %d: %d, want %d + %d", j, sums[j], before[j], c)
			}
		}
	})
}

// Each bit of each report is looked at: one count too high anywhere, or one bit of padding.
func TestCheckPackedRefuses(t *testing.T) {
	for _, levels := range []uint32{1, 2, 4, 90, 254, 300, 1<<20 - 2} {
		for dim := 1; dim < 40; dim++ {
			p := Params{Dim: dim, ClipNorm: 1, Levels: levels, Coin: Fair}
			width := p.CountBits()
			good := p.Pack(nil, make([]uint32, dim))
			for bit := range 8 * len(good) {
				bad := slices.Clone(good)
				bad[bit/8] |= 1 << (bit % 8)
				count := uint32(1) << (bit % width)
				wrong := bit >= dim*width || count > p.MaxCount()
				if err := p.CheckPacked(bad); errors.Is(err, ErrReportRange) != wrong {
					t.Fatalf("d = %d, g = %d, bit %d: %v", dim, levels, bit, err)
				}
			}
			for j := range dim {
				full := make([]byte, len(good)) // one count of ones
				for bit := j * width; bit < (j+1)*width; bit++ {
					full[bit/8] |= 1 << (bit % 8)
				}
				wrong := uint64(1)<<width-1 > uint64(p.MaxCount())
				if err := p.CheckPacked(full); errors.Is(err, ErrReportRange) != wrong {
					t.Fatalf("d = %d, g = %d, count %d: %v", dim, levels, j, err)
				}
			}
		}
	}
	p := Params{Dim: 3, ClipNorm: 1, Levels: 4, Trials: 2, Coin: Fair}
	for _, data := range [][]byte{nil, {0}, {0, 0, 0}} {
		if err := p.CheckPacked(data); !errors.Is(err, ErrReportLength) {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
}

func TestAddPackedPanicsOnBrokenInvariants(t *testing.T) {
	p := Params{Dim: 3, ClipNorm: 1, Levels: 4, Trials: 2, Coin: Fair}
	for _, c := range []struct{ sums, bytes int }{{2, 2}, {4, 2}, {3, 1}, {3, 3}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d bytes to %d sums: no panic", c.bytes, c.sums)
				}
			}()
			p.AddPacked(make([]uint64, c.sums), make([]byte, c.bytes))
		}()
	}
}
