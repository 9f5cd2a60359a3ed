package main

import (
	"context"
	crand "crypto/rand"
	"fmt"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle"
)

// dims are the dimensions that everything is measured at.
var dims = [...]int{10, 100, 784}

// trials of a report's noise: the most that share a word of entropy with the rounding. Plans of up to some thousand users a
// round have as many or fewer.
const trials = 40

// slab is how many bytes of input a repetition walks through: more than caches hold, so that memory is paid for.
const slab = 64 << 20

// mixed is the most users in one cohort that is mixed; the set of their ids grows with it.
const mixed = 1 << 14

// cpu measures a device's and a stage's arithmetic on one core.
func cpu(ctx context.Context, l *lab) error {
	for _, dim := range dims {
		if err := encoding(ctx, l, dim); err != nil {
			return err
		}
	}
	for _, dim := range dims {
		for _, bundle := range [...]int{1, 64} {
			if err := mixing(ctx, l, dim, bundle); err != nil {
				return err
			}
		}
	}
	return nil
}

const cpuGroup = "Arithmetic on one core, over a copy of the same bytes"

// timed is how many nanoseconds f takes for each of n units.
func timed(n int, f func()) float64 { return float64(cpuTime(f).Nanoseconds()) / float64(n) }

func encoding(ctx context.Context, l *lab, dim int) error {
	p := randomizer.Params{Dim: dim, ClipNorm: 1, Levels: 20, Trials: trials, Coin: randomizer.Fair}
	v, err := randomizer.NewVectorSum(p, nil)
	if err != nil {
		return err
	}
	users := l.of(slab, 1<<20) / 8 / dim
	x := make([]float64, users*dim)
	for j := range x {
		x[j] = float64(j%7)/3 - 1
	}
	copied := make([]float64, len(x))
	packed := make([]byte, 0, users*p.ReportBytes())
	var counts []uint32
	var draw, pack, plain series
	for range l.of(10, 3) {
		if err := ctx.Err(); err != nil {
			return err
		}
		draw = append(draw, timed(len(x), func() {
			for i := range users {
				if counts, err = v.Encode(counts, x[i*dim:(i+1)*dim]); err != nil {
					panic(err) // of the right length
				}
			}
		}))
		pack = append(pack, timed(len(x), func() {
			packed = packed[:0]
			for range users {
				packed = p.Pack(packed, counts)
			}
		}))
		plain = append(plain, timed(len(x), func() {
			for i := range users {
				copy(copied[i*dim:(i+1)*dim], x[i*dim:])
			}
		}))
	}
	draw, pack, plain = draw[1:], pack[1:], plain[1:] // the first touched the memory
	l.add(newRow(cpuGroup, fmt.Sprintf("encode, d = %d", dim), "ns a coordinate", draw).
		beside("copy, ns", draw, plain).atMost("at most 15", draw.median(), 15))
	l.add(newRow(cpuGroup, fmt.Sprintf("pack, d = %d", dim), "ns a coordinate", pack).beside("copy, ns", pack, plain))
	return nil
}

func mixing(ctx context.Context, l *lab, dim, bundle int) error {
	p := randomizer.Params{Dim: dim, ClipNorm: 1, Levels: 20, Trials: trials, Coin: randomizer.Fair}
	v, err := randomizer.NewVectorSum(p, nil)
	if err != nil {
		return err
	}
	users := min(mixed, l.of(1<<24, 1<<18)/dim) / bundle * bundle
	size := p.ReportBytes()
	packed := make([]byte, 0, users*size)
	var counts []uint32
	x := make([]float64, dim)
	for range users {
		if counts, err = v.Encode(counts, x); err != nil {
			return err
		}
		packed = p.Pack(packed, counts)
	}
	ids := make([]shuffle.ReportID, users)
	for i := range ids {
		_, _ = crand.Read(ids[i][:]) // never fails
	}
	copied := make([]byte, len(packed))
	var mix, plain series
	for range l.of(10, 3) {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := shuffle.NewMixer(shuffle.Config{Params: p, Cohort: uint64(users), Minimum: 1, MaxBundle: uint64(bundle)})
		if err != nil {
			return err
		}
		mix = append(mix, timed(users*dim, func() {
			for i := 0; i < users; i += bundle {
				if out := m.Add(ids[i:i+bundle], packed[i*size:(i+bundle)*size]); out != shuffle.Accepted {
					panic(fmt.Sprintf("mix: %v", out))
				}
			}
		}))
		plain = append(plain, timed(users*dim, func() {
			for i := 0; i < users; i += bundle {
				copy(copied[i*size:(i+bundle)*size], packed[i*size:])
			}
		}))
		m.Erase()
	}
	mix, plain = mix[1:], plain[1:]
	what := fmt.Sprintf("mix, d = %d, single reports", dim)
	if bundle > 1 {
		what = fmt.Sprintf("mix, d = %d, bundles of %d", dim, bundle)
	}
	l.add(newRow(cpuGroup, what, "ns a coordinate", mix).beside("copy, ns", mix, plain).atMost("at most 2", mix.median(), 2))
	return nil
}
