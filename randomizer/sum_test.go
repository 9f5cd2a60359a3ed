package randomizer

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// ValidateReport accepts what Unpack accepts of every report, unless it is out of reach, and Add adds what it returns.
func TestAddIsUnpackAndAdd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := Params{ClipNorm: 1, Coin: Fair,
			Dim: rapid.IntRange(1, 70).Draw(rt, "d"),
			Levels: rapid.OneOf(rapid.Uint32Range(1, 20), rapid.Uint32Range(1, 200), rapid.Uint32Range(1, MaxLevels)).Draw(rt,
				"g"),
			Trials: rapid.OneOf(rapid.Uint32Range(0, 20), rapid.Uint32Range(0, MaxTrials)).Draw(rt, "b")}
		adder, users := NewAdder(p, 1), rapid.IntRange(1, 20).Draw(rt, "users")
		var data []byte
		for range users {
			data = p.Pack(data, rapid.SliceOfN(rapid.Uint32Range(0, p.MaxCount()), p.Dim, p.Dim).Draw(rt, "counts"))
		}
		if rapid.Bool().Draw(rt, "damaged") {
			i := rapid.IntRange(0, len(data)-1).Draw(rt, "byte")
			data[i] ^= rapid.Byte().Draw(rt, "change")
		}
		sums := rapid.SliceOfN(rapid.Uint64Range(0, 1<<62), p.Dim, p.Dim).Draw(rt, "sums")
		wanted := slices.Clone(sums)
		var bad error
		for i := range users {
			counts, err := p.Unpack(nil, data[i*p.ReportBytes():(i+1)*p.ReportBytes()])
			if bad = errors.Join(bad, err); err == nil && far(p, counts) {
				bad = errors.Join(bad, errors.New("out of reach"))
			}
			for j, c := range counts {
				wanted[j] += uint64(c)
			}
		}
		if err := adder.ValidateReport(data); (err == nil) != (bad == nil) || err != nil && !errors.Is(err, errReportRange) {
			rt.Fatalf("ValidateReport says %v, Unpack %v", err, bad)
		}
		if bad != nil {
			return
		}
		if adder.Add(sums, data); !slices.Equal(sums, wanted) {
			rt.Fatalf("sums %d, want %d", sums, wanted)
		}
	})
}

// Fields of every width are taken apart before they overflow: more reports than they can hold, all counts at their
// most.
func TestAddOfManyReports(t *testing.T) {
	for width := 1; width <= 16; width++ {
		for _, dim := range []int{1, 7, 8, 9, 17} {
			p := Params{Dim: dim, ClipNorm: 1, Levels: 1<<width - 1, Coin: Fair}
			counts := make([]uint32, dim)
			for j := range counts {
				counts[j] = p.MaxCount() - uint32(j%2)
			}
			var data []byte
			users := 2<<width + 3
			for range users {
				data = p.Pack(data, counts)
			}
			adder, sums := NewAdder(p, 1), make([]uint64, dim)
			adder.Add(sums, data)
			for j, c := range counts {
				if sums[j] != uint64(users)*uint64(c) {
					t.Errorf("%d bits, d = %d: sum %d is %d, want %d times %d", width, dim, j, sums[j], users, c)
				}
			}
		}
	}
}

// The range of each bit of each report is looked at: one count too high anywhere, or one bit of padding.
func TestCheckRefuses(t *testing.T) {
	for _, levels := range []uint32{1, 2, 4, 90, 254, 300, 1<<15 - 2, 1<<16 - 2, MaxLevels} {
		for dim := 1; dim < 40; dim++ {
			p := Params{Dim: dim, ClipNorm: 1, Levels: levels, Coin: Fair}
			adder, width := NewAdder(p, 1), p.countBits()
			adder.reach.most = math.MaxUint64 // no report is out of reach
			good := p.Pack(nil, make([]uint32, dim))
			for bit := range 8 * len(good) {
				bad := slices.Clone(good)
				bad[bit/8] |= 1 << (bit % 8)
				count := uint32(1) << (bit % width)
				wrong := bit >= dim*width || count > p.MaxCount()
				if err := adder.ValidateReport(bad); errors.Is(err, errReportRange) != wrong {
					t.Fatalf("d = %d, g = %d, bit %d: %v", dim, levels, bit, err)
				}
			}
			for j := range dim {
				full := make([]byte, len(good)) // one count of ones
				for bit := j * width; bit < (j+1)*width; bit++ {
					full[bit/8] |= 1 << (bit % 8)
				}
				wrong := uint64(1)<<width-1 > uint64(p.MaxCount())
				if err := adder.ValidateReport(full); errors.Is(err, errReportRange) != wrong {
					t.Fatalf("d = %d, g = %d, count %d: %v", dim, levels, j, err)
				}
			}
		}
	}
	p := Params{Dim: 3, ClipNorm: 1, Levels: 4, Trials: 2, Coin: Fair}
	for _, data := range [][]byte{nil, {0}, {0, 0, 0}} {
		if err := NewAdder(p, 1).ValidateReport(data); !errors.Is(err, errReportLength) {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
}

func TestAddPanicsOnBrokenInvariants(t *testing.T) {
	p := Params{Dim: 3, ClipNorm: 1, Levels: 4, Trials: 2, Coin: Fair}
	for _, c := range []struct{ sums, bytes int }{{2, 2}, {4, 2}, {3, 1}, {3, 3}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d bytes to %d sums: no panic", c.bytes, c.sums)
				}
			}()
			NewAdder(p, 1).Add(make([]uint64, c.sums), make([]byte, c.bytes))
		}()
	}
}
