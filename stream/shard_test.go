package stream_test

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/dptest"
	"github.com/panlearn/panlearn/stream"
)

// TestShardOf: one shard for an id, that of its first bytes, whatever follows them.
func TestShardOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var id, other [stream.ReportIDSize]byte
		copy(id[:], sized(t, 16))
		copy(other[:], sized(t, 16))
		copy(other[:stream.ShardPrefix], id[:])
		shards := rapid.IntRange(0, stream.MaxShards).Draw(t, "shards")
		s := stream.ShardOf(id, shards)
		if s != stream.ShardOf(other, shards) || (shards <= 1) != (s == 0) || int(s) > max(shards, 0) {
			t.Fatalf("shard %d of %d", s, shards)
		}
		if shards > 1 && uint64(s-1) != binary.BigEndian.Uint64(id[:8])%uint64(shards) {
			t.Fatalf("shard %d of %d for %x", s, shards, id)
		}
	})
}

// TestShardsAreEven: random ids load all shards alike.
func TestShardsAreEven(t *testing.T) {
	const n = 40_000
	for _, shards := range []int{2, 3, 7, 16} {
		counts, prob := make([]uint64, shards), make([]float64, shards)
		for range n {
			var id [stream.ReportIDSize]byte
			_, _ = rand.Read(id[:])
			counts[stream.ShardOf(id, shards)-1]++
		}
		for i := range prob {
			prob[i] = 1 / float64(shards)
		}
		dptest.ChiSquare(t, fmt.Sprintf("%d shards", shards), counts, prob, dptest.Alpha/4)
	}
}
