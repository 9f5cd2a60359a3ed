package randomizer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
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
	}{{0, Fair}, {9, Fair}, {40, Fair}, {64, Fair}, {1024, Fair}, {9, Fair / 3}, {64, Fair / 3}, {1024,
		Fair / 3}, {1 << 20, Fair}, {205560000, Fair}} {
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

// BenchmarkReport is a device's arithmetic at the trials of plans of some thousand users a round: encode and pack,
// over a copy of the same coordinates, on vectors that no cache holds.
func BenchmarkReport(b *testing.B) {
	for _, dim := range []int{10, 100, 784} {
		p := Params{Dim: dim, ClipNorm: 1, Levels: 20, Trials: 40, Coin: Fair}
		v, err := NewVectorSum(p, nil)
		if err != nil {
			b.Fatal(err)
		}
		users := 64 << 20 / 8 / dim
		x := make([]float64, users*dim)
		for j := range x {
			x[j] = float64(j%7)/3 - 1
		}
		copied, packed := make([]float64, len(x)), make([]byte, 0, users*p.ReportBytes())
		counts := make([]uint32, dim)
		for what, one := range map[string]func(i int){
			"Encode": func(i int) { counts, _ = v.Encode(counts, x[i*dim:(i+1)*dim]) }, // of the right length
			"Pack":   func(int) { packed = p.Pack(packed, counts) },
		} {
			b.Run(fmt.Sprintf("%s/d=%d", what, dim), func(b *testing.B) {
				var work, plain time.Duration
				copy(copied, x) // touches the memory
				for range b.N {
					begun := time.Now()
					for i := range users {
						one(i)
					}
					work += time.Since(begun)
					packed = packed[:0]
					begun = time.Now()
					for i := range users {
						copy(copied[i*dim:(i+1)*dim], x[i*dim:])
					}
					plain += time.Since(begun)
				}
				b.ReportMetric(float64(work.Nanoseconds())/float64(b.N)/float64(len(x)), "ns/coordinate")
				b.ReportMetric(work.Seconds()/plain.Seconds(), "copies")
			})
		}
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
		b.Run(fmt.Sprintf("Pack/bits=%d", p.countBits()), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				packed = p.Pack(packed[:0], counts)
			}
			perCoordinate(b, dim)
		})
		b.Run(fmt.Sprintf("Unpack/bits=%d", p.countBits()), func(b *testing.B) {
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
