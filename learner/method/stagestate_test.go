package method_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/method"
)

func TestImpossibleMeanOfProxIsRefused(t *testing.T) {
	a, err := method.NewProx(method.ProxConfig{Dim: 2, Set: convex.Ball{R: 2}, Steps: 4, Average: 2})
	if err != nil {
		t.Fatal(err)
	}
	step := func() {
		t.Helper()
		if err := a.Step(method.Estimate{Gradient: []float64{1, -1}, Users: 5}); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if err := a.Skip(); err != nil {
		t.Fatal(err)
	}
	step()
	good := bytesOf(t, a)
	put := func(at int, x float64) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint64(b[at:], math.Float64bits(x))
		return b
	}
	const center, mean, in = 54, 54 + 16, 54 + 32
	for _, b := range [][]byte{put(center, 1.25), put(mean, 7), put(in, 0)} {
		// passed over: which round it was is not said
		if err := a.UnmarshalBinary(b); err != nil {
			t.Errorf("a possible state: %v", err)
		}
	}
	unmoved := put(in, 0)
	unmoved[6] = 0
	for name, b := range map[string][]byte{"outside": put(center, 9), "mean": put(mean, math.Inf(1)), "count": put(in, 2),
		"negative": put(in, -1),
		"part":     put(in, 0.5), "nan": put(in, math.NaN()), "short": good[:len(good)-8], "moved without a step": unmoved} {
		if err := a.UnmarshalBinary(b); !errors.Is(err, method.ErrState) {
			t.Errorf("%s: error %v, want ErrState", name, err)
		}
	}
}

func TestImpossibleStageIsRefused(t *testing.T) {
	for _, name := range []string{"restarts", "epochs"} {
		a := build(t, name, 2, 3)
		const start, inner = 54, 54 + 16
		good := bytesOf(t, a) // epochs: 1, 2, 3, 3 .. steps; restarts: 1, 2
		change := func(f func(b []byte)) []byte {
			b := bytes.Clone(good)
			f(b)
			return b
		}
		for what, b := range map[string][]byte{
			"stage":        change(func(b []byte) { b[6], b[13] = 200, 200 }),
			"second count": change(func(b []byte) { b[14] = 1 }),
			"start":        change(func(b []byte) { binary.LittleEndian.PutUint64(b[start:], math.Float64bits(1)) }),
			"start outside": change(func(b []byte) {
				b[6] = 1
				binary.LittleEndian.PutUint64(b[start:],
					math.Float64bits(9))
			}),
			"finished stage":   change(func(b []byte) { b[inner+6] = 1 }),
			"another stage":    change(func(b []byte) { b[6] = 1 }),
			"cut off":          good[:inner-1],
			"no inner state":   good[:inner],
			"trailing":         append(bytes.Clone(good), 0),
			"steps passed max": change(func(b []byte) { b[6+5] = 1 }), // 2^40 stages
		} {
			if err := a.UnmarshalBinary(b); !errors.Is(err, method.ErrState) {
				t.Errorf("%s, %s: error %v, want ErrState", name, what, err)
			}
			if !bytes.Equal(good, bytesOf(t, a)) {
				t.Errorf("%s, %s: a refused state changed the receiver", name, what)
			}
		}
	}
}

// TestForgedStageIsRefused: states that agree within themselves, and could still not have been reached.
func TestForgedStageIsRefused(t *testing.T) {
	moved := func(start []float64) learner.Algorithm {
		a, err := method.NewEpochs(method.EpochsConfig{Dim: 2, Set: convex.Ball{R: 2}, Start: start, Horizon: 3, V: 3,
			Smoothness: 1})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := moved(nil)
	const header = 54
	elsewhere := append(bytesOf(t, a)[:header:header], bytesOf(t, moved([]float64{1, 0}))[header:]...)
	if err := a.UnmarshalBinary(elsewhere); !errors.Is(err, method.ErrState) {
		t.Errorf("the first stage from another start: error %v, want ErrState", err)
	}
	for range 5 { // into the third epoch, which all that follow are like
		if err := a.Step(method.Estimate{Gradient: []float64{1, -1}, Users: 1}); err != nil {
			t.Fatal(err)
		}
	}
	later := func(stage uint64) []byte {
		b := bytesOf(t, a)
		binary.LittleEndian.PutUint64(b[6:], stage)
		return b
	}
	if err := moved(nil).UnmarshalBinary(later(1 << 38)); err != nil {
		t.Errorf("stage 2^38: %v", err)
	}
	for _, stage := range []uint64{1 << 39, 1 << 40, 1 << 62, math.MaxUint64} {
		if err := moved(nil).UnmarshalBinary(later(stage)); !errors.Is(err, method.ErrState) {
			t.Errorf("stage %d, beyond 2^40 steps: error %v, want ErrState", stage, err)
		}
	}
}
