package randomizer

import (
	"math/big"
	"math/bits"
	"testing"

	"github.com/panlearn/panlearn/internal/test/dptest"
)

// Every pattern of the bits that n coins can read, once each: the number of patterns with k successes must be exactly
// C(n, k) c^k (q)^(n-k) for p = c/(c+q) on that many bits.
func TestFlipsExactOverAllCoins(t *testing.T) {
	for _, c := range []struct {
		depth int // bits of p
		num   int64
		n     int
	}{
		{1, 1, 1}, {1, 1, 12}, {2, 1, 5}, {2, 3, 6}, {3, 1, 4}, {3, 3, 5}, {3, 5, 4}, {3, 7, 3}, {4, 11, 3}, {5, 19, 2},
		{8, 77, 2},
	} {
		coin := Coin(c.num << (CoinBits - c.depth))
		seen := make([]int64, c.n+1)
		words := make([]uint64, c.depth)
		for pattern := range uint64(1) << (c.depth * c.n) {
			for i := range words {
				// Lanes above n hold ones: they must not matter.
				words[i] = pattern>>(i*c.n)&(1<<c.n-1) | ^uint64(0)<<c.n
			}
			seen[coin.flips(&dptest.Words{T: t, List: words}, uint64(c.n))]++
		}
		for k, got := range seen {
			want := new(big.Int).Binomial(int64(c.n), int64(k))
			want.Mul(want, new(big.Int).Exp(big.NewInt(c.num), big.NewInt(int64(k)), nil))
			want.Mul(want, new(big.Int).Exp(big.NewInt(1<<c.depth-c.num), big.NewInt(int64(c.n-k)), nil))
			if want.Cmp(big.NewInt(got)) != 0 {
				t.Errorf("p = %d/2^%d, n = %d: %d patterns with %d successes, want %v", c.num, c.depth, c.n, got, k, want)
			}
		}
	}
}

// All 2^24 values of the uniform integer, 64 lanes at a time: exactly those below the coin succeed.
func TestLanesCompareWithTheCoin(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 17
	}
	for _, coin := range []Coin{1, Fair, Fair / 3, 1<<CoinBits - 1, 0xABCDE} {
		words := make([]uint64, CoinBits)
		for block := 0; block < 1<<(CoinBits-6); block += step {
			// Lane i holds U = 64 block + i. Its high bits are block's, its low six are i's.
			for bit := range CoinBits {
				place := CoinBits - 1 - bit
				switch {
				case place >= 6:
					words[bit] = -uint64(block >> (place - 6) & 1)
				default:
					words[bit] = []uint64{0xaaaaaaaaaaaaaaaa, 0xcccccccccccccccc, 0xf0f0f0f0f0f0f0f0,
						0xff00ff00ff00ff00, 0xffff0000ffff0000, 0xffffffff00000000}[place]
				}
			}
			won := coin.lanes(&dptest.Words{T: t, List: words}, ^uint64(0))
			below := min(max(int(coin)-64*block, 0), 64)
			if won != ^uint64(0)>>(64-below) && !(below == 0 && won == 0) {
				t.Fatalf("coin %d, block %d: lanes %064b, want the lowest %d", uint32(coin), block, won, below)
			}
		}
	}
}

// Blocks of 64 flips use words of their own.
func TestFlipsOfManyLanes(t *testing.T) {
	words := []uint64{0, 1, ^uint64(0), 0xff00}
	got := Fair.flips(&dptest.Words{T: t, List: words}, 64*3+4)
	if want := uint64(64 + 63 + 0 + 4); got != want {
		t.Errorf("got %d successes, want %d", got, want)
	}
	if bits.OnesCount64(Fair.lanes(&dptest.Words{T: t, List: []uint64{0}}, 0b101)) != 2 {
		t.Error("lanes outside the mask succeeded")
	}
	if Fair.flips(&dptest.Words{T: t}, 0) != 0 {
		t.Error("no coins, but successes")
	}
}
