package randomizer

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// perCoordinate reports ns/coordinate besides ns/op.
func perCoordinate(b *testing.B, dim int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(dim), "ns/coordinate")
}

func BenchmarkEncode(b *testing.B) {
	const dim = 100
	x := make([]float64, dim)
	for j := range x {
		x[j] = float64(j%7) - 3 // longer than L: clipped
	}
	for _, c := range []struct {
		trials uint32
		coin   Coin
	}{{0, Fair}, {9, Fair}, {40, Fair}, {64, Fair}, {1024, Fair}, {9, Fair / 3}, {64, Fair / 3}, {1024, Fair / 3}, {1 << 20, Fair}, {205560000, Fair}} {
		b.Run(fmt.Sprintf("b=%d/p=%.4f", c.trials, c.coin.Float()), func(b *testing.B) {
			v, err := NewVectorSum(Params{Dim: dim, ClipNorm: 1, Levels: 64, Trials: c.trials, Coin: c.coin}, nil)
			if err != nil {
				b.Fatal(err)
			}
			dst := make([]uint32, dim)
			b.ReportAllocs()
			for b.Loop() {
				if dst, err = v.Encode(dst, x); err != nil {
					b.Fatal(err)
				}
			}
			perCoordinate(b, dim)
		})
	}
}

func BenchmarkPack(b *testing.B) {
	const dim = 100
	for _, trials := range []uint32{9, 1000, 1 << 31} {
		p := Params{Dim: dim, ClipNorm: 1, Levels: 64, Trials: trials, Coin: Fair}
		counts := make([]uint32, dim)
		src := rand.New(rand.NewPCG(1, 2))
		for j := range counts {
			counts[j] = src.Uint32N(p.MaxCount())
		}
		packed := p.Pack(nil, counts)
		b.Run(fmt.Sprintf("Pack/bits=%d", p.CountBits()), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				packed = p.Pack(packed[:0], counts)
			}
			perCoordinate(b, dim)
		})
		b.Run(fmt.Sprintf("Unpack/bits=%d", p.CountBits()), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Unpack(counts, packed); err != nil {
					b.Fatal(err)
				}
			}
			perCoordinate(b, dim)
		})
	}
}

func BenchmarkNewBinomial(b *testing.B) {
	for _, trials := range []uint64{2000, 1 << 20, 205560000, 1 << 31} {
		b.Run(fmt.Sprintf("trials=%d", trials), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := NewBinomial(trials, Fair); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
