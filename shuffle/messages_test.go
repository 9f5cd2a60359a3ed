package shuffle

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/randomizer"
)

func TestTallyInvertsMessages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := randomizer.Params{ClipNorm: 1, Coin: randomizer.Fair,
			Dim:    rapid.IntRange(1, 5).Draw(rt, "d"),
			Levels: rapid.Uint32Range(1, 9).Draw(rt, "g")}
		rel := Release{Users: rapid.Uint64Range(1, 40).Draw(rt, "m"), NoiseTrials: rapid.Uint64Range(0, 300).Draw(rt,
			"trials")}
		each := rel.Users*uint64(p.Levels) + rel.NoiseTrials
		rel.Totals = rapid.SliceOfN(rapid.Uint64Range(0, each), p.Dim, p.Dim).Draw(rt, "totals")
		m, err := newMessages(rel, p, 1<<20, nil)
		if err != nil {
			rt.Fatal(err)
		}
		got, err := m.tally()
		if err != nil || !slices.Equal(got, rel.Totals) || m.Each != each {
			rt.Fatalf("tally %v, %v; want %v of %d", got, err, rel.Totals, each)
		}
	})
}

// No shape from outside can panic, and what tallies fits its rows.
func FuzzTally(f *testing.F) {
	f.Add(2, uint64(9), []byte{1, 0, 255, 1})
	f.Add(1, uint64(0), []byte(nil))
	f.Add(3, uint64(1)<<63, []byte{1})
	f.Fuzz(func(t *testing.T, dim int, each uint64, bits []byte) {
		totals, err := messages{Dim: dim, Each: each, Bits: bits}.tally()
		if err != nil {
			return
		}
		if len(totals) != dim {
			t.Fatalf("%d totals for %d rows", len(totals), dim)
		}
		for _, n := range totals {
			if n > each {
				t.Fatalf("total above %d", each)
			}
		}
	})
}

// All choices of 2 of 5 positions are equally likely.
func TestMessagesAreUniform(t *testing.T) {
	p := randomizer.Params{Dim: 2, ClipNorm: 1, Levels: 2, Coin: randomizer.Fair}
	src := dptest.Source(t, 21)
	counts := [2][]uint64{make([]uint64, 32), make([]uint64, 32)}
	for range 20000 {
		m, err := newMessages(Release{Users: 2, NoiseTrials: 1, Totals: []uint64{2, 3}}, p, 2, src)
		if err != nil {
			t.Fatal(err)
		}
		counts[0][m.Bits[0]]++
		counts[1][m.Bits[1]]++
	}
	for j, row := range counts {
		var cells []uint64
		for pattern, n := range row {
			if ones := pattern&1 + pattern>>1&1 + pattern>>2&1 + pattern>>3&1 + pattern>>4; ones == j+2 {
				cells = append(cells, n)
			} else if n != 0 {
				t.Errorf("row %d: pattern %05b", j, pattern)
			}
		}
		dptest.ChiSquare(t, fmt.Sprint("row ", j), cells, slices.Repeat([]float64{0.1}, 10), dptest.Alpha)
	}
}

func TestMessagesRefuse(t *testing.T) {
	p := randomizer.Params{Dim: 2, ClipNorm: 1, Levels: 2, Coin: randomizer.Fair}
	good := Release{Users: 2, NoiseTrials: 1, Totals: []uint64{2, 5}}
	if _, err := newMessages(good, p, 2, nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		rel   Release
		p     randomizer.Params
		limit uint64
	}{
		"limit":        {good, p, 1},
		"totals":       {Release{Users: 2, NoiseTrials: 1, Totals: []uint64{2}}, p, 2},
		"impossible":   {Release{Users: 2, NoiseTrials: 1, Totals: []uint64{2, 6}}, p, 2},
		"users":        {Release{Users: math.MaxUint64, Totals: []uint64{2, 6}}, p, math.MaxUint64},
		"trials":       {Release{Users: 1, NoiseTrials: math.MaxUint64, Totals: []uint64{2, 6}}, p, math.MaxUint64},
		"size":         {Release{Users: 1, NoiseTrials: 1 << 62, Totals: []uint64{2, 6}}, p, 1 << 40},
		"params":       {good, randomizer.Params{}, 2},
		"empty totals": {Release{Users: 1}, p, 2},
	} {
		if _, err := newMessages(c.rel, c.p, c.limit, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestTallyRefuses(t *testing.T) {
	for name, m := range map[string]messages{
		"zero":     {},
		"short":    {Dim: 2, Each: 9, Bits: make([]byte, 3)},
		"long":     {Dim: 2, Each: 9, Bits: make([]byte, 5)},
		"padding":  {Dim: 2, Each: 9, Bits: []byte{0, 2, 0, 0}},
		"negative": {Dim: -1, Each: 9, Bits: nil},
		"huge":     {Dim: 1 << 20, Each: 1 << 62, Bits: nil},
		"overflow": {Dim: 8, Each: math.MaxUint64, Bits: nil},
	} {
		if got, err := m.tally(); err == nil {
			t.Errorf("%s: tally %v", name, got)
		}
	}
}

// Every order of four and of five things has the same probability.
func TestPermuteIsUniform(t *testing.T) {
	for _, n := range []int{4, 5} {
		src := dptest.Source(t, uint64(n))
		index := map[string]int{}
		var counts []uint64
		for range 60000 {
			s := []byte("abcde")[:n]
			permute(s, src)
			i, ok := index[string(s)]
			if !ok {
				i = len(counts)
				index[string(s)] = i
				counts = append(counts, 0)
			}
			counts[i]++
		}
		orders := map[int]int{4: 24, 5: 120}[n]
		if len(counts) != orders {
			t.Fatalf("%d orders of %d things, want %d", len(counts), n, orders)
		}
		dptest.ChiSquare(t, fmt.Sprint(n, " things"), counts, slices.Repeat([]float64{1 / float64(orders)}, orders),
			dptest.Alpha)
	}
	s := []int{1}
	permute(s, nil)
	permute([]int(nil), nil)
	if s[0] != 1 {
		t.Error("one thing changed")
	}
}

func BenchmarkMessages(b *testing.B) {
	p := randomizer.Params{Dim: 10, ClipNorm: 1, Levels: 64, Trials: 9, Coin: randomizer.Fair}
	rel := Release{Users: 1000, NoiseTrials: 9000, Totals: slices.Repeat([]uint64{36000}, 10)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := newMessages(rel, p, 1<<20, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10/73000, "ns/message")
}
