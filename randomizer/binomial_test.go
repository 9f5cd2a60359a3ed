package randomizer

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/panlearn/panlearn/internal/test/dptest"
)

// cells divides the outcomes of Bin(n, p) into about 60 cells from -6 to 6 standard deviations.
type cells struct {
	n, p, low, width float64
}

func newCells(n uint64, p float64) cells {
	sd := math.Sqrt(float64(n) * p * (1 - p))
	return cells{n: float64(n), p: p, low: math.Floor(float64(n)*p - 6*sd), width: math.Ceil(sd / 5)}
}

const cellCount = 62

func (c cells) of(k uint64) int {
	return int(min(max((float64(k)-c.low)/c.width+1, 0), cellCount-1))
}

// upTo returns P(Bin <= x) by the regularized incomplete beta function, good to about 1e-12.
func (c cells) upTo(x float64) float64 {
	switch {
	case x < 0:
		return 0
	case x >= c.n:
		return 1
	}
	return distuv.Binomial{N: c.n, P: c.p}.CDF(x)
}

func (c cells) probabilities() []float64 {
	out := make([]float64, cellCount)
	last := 0.0
	for i := range cellCount - 1 {
		next := c.upTo(c.low + float64(i)*c.width - 1)
		out[i] = next - last
		last = next
	}
	out[cellCount-1] = 1 - last
	return out
}

func TestBinomialLaw(t *testing.T) {
	const draws = 100000
	for i, c := range []struct {
		trials uint64
		coin   Coin
	}{
		{5, Fair}, {64, Fair}, {250, Fair}, {257, Fair}, {1025, Fair}, {1 << 20, Fair}, {205560000, Fair},
		{5, Fair / 3}, {8, Fair + 12345}, {9, Fair / 3}, {129, Fair / 3}, {5000, Fair / 100}, {1 << 20, 1<<CoinBits - 5000},
		{100000, 1000}, {1 << 26, 3},
	} {
		name := fmt.Sprintf("Bin(%d, %v)", c.trials, c.coin)
		t.Run(name, func(t *testing.T) {
			b, err := NewBinomial(c.trials, c.coin)
			if err != nil {
				t.Fatal(err)
			}
			p := c.coin.Float()
			grid := newCells(c.trials, p)
			src := dptest.Source(t, uint64(i))
			counts := make([]uint64, cellCount)
			samples := make([]float64, draws)
			for i := range samples {
				k := b.Sample(src)
				counts[grid.of(k)]++
				samples[i] = float64(k)
			}
			dptest.ChiSquare(t, name, counts, grid.probabilities(), dptest.Alpha)
			n := float64(c.trials)
			dptest.Mean(t, name, samples, dptest.Moment{Mean: n * p, Variance: n * p * (1 - p), Term: 1}, dptest.Alpha)
		})
	}
}

// More than 2^31 trials are whole chunks and a rest.
func TestBinomialChunks(t *testing.T) {
	if testing.Short() {
		t.Log("NOT RUN: tables of 2^31 trials take a second (-short)")
		return
	}
	const trials, draws = 3<<31 + 1000000, 20000
	b, err := NewBinomial(trials, Fair/2)
	if err != nil {
		t.Fatal(err)
	}
	src := dptest.Source(t, 5)
	samples := make([]float64, draws)
	for i := range samples {
		samples[i] = float64(b.Sample(src))
	}
	m := dptest.Moment{Mean: trials / 4.0, Variance: trials * 3 / 16.0, Term: 1}
	dptest.Mean(t, "chunks", samples, m, dptest.Alpha)
	dptest.Variance(t, "chunks", samples, m.Mean, m.Variance, dptest.Alpha)
}

func TestBinomialRefuses(t *testing.T) {
	for _, c := range []struct {
		trials uint64
		coin   Coin
	}{{1, 0}, {1, 1 << CoinBits}, {MaxBinomialTrials + 1, Fair}} {
		if _, err := NewBinomial(c.trials, c.coin); err == nil {
			t.Errorf("NewBinomial(%d, %d) was accepted", c.trials, uint32(c.coin))
		}
	}
	b, err := NewBinomial(0, Fair)
	if err != nil || b.Sample(&dptest.Words{T: t}) != 0 {
		t.Errorf("no trials must give 0 without randomness: %v", err)
	}
}

// A sampler is immutable: concurrent callers with sources of their own are safe (run with -race).
func TestBinomialIsShared(t *testing.T) {
	b, err := NewBinomial(10000, Fair/3)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan uint64)
	for range 4 {
		go func() {
			src := NewEntropy()
			var sum uint64
			for range 1000 {
				sum += b.Sample(src)
			}
			done <- sum
		}()
	}
	for range 4 {
		<-done
	}
}
