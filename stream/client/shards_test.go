package client_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/randomizer/accounting"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// TestShardsOfAttempts: every message goes to the shard of its ids and opens under that shard's key and number. A new
// attempt with another number of shards gets the same ids and counts, in the same bundles.
func TestShardsOfAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := newWorld(t, plan{rounds: 1, cohort: 24, sealed: true, bundle: 4})
		hash := w.announce(ctx, 1)
		s := newSpy(t, client.NewMemoryStore())
		c := w.config(s)
		c.Bundle = 4
		cl := w.client(c)
		var group sync.WaitGroup
		group.Go(func() { _, _ = cl.Run(ctx, rows(24, false)) })
		counts := map[[16]byte][]byte{} // of an id, as the first attempt got them
		for attempt, shards := range []int{3, 1, 5} {
			a := uint64(attempt + 1)
			open := w.openMessage(1, a, hash)
			keys := make([]*seal.RoundKey, shards)
			for i := range keys {
				key, err := seal.NewRoundKey(w.task.Suite)
				must(t, err)
				if keys[i] = key; i == 0 {
					open.PublicKey = key.Public()
					continue
				}
				open.Shards = append(open.Shards, &wire.Shard{PublicKey: key.Public(), Instance: bytes.Repeat([]byte{byte(i)}, 16), Seat: uint32(i)})
				open.HandoverKey = []byte("nothing to a device")
			}
			w.put(ctx, w.name.Open(1, stream.Attempt(a)), w.stage, open)
			time.Sleep(30 * time.Second)
			users, used := 0, map[uint32]bool{}
			for _, m := range w.broker.Dump() {
				at, err := stream.ParseSubject(m.Subject)
				must(t, err)
				if m.Stream != stream.Reports || at.Attempt != stream.Attempt(a) {
					continue
				}
				var r wire.Report
				must(t, stream.Unmarshal(m.Data, &r))
				used[at.Shard] = true
				for _, id := range r.Ids {
					if stream.ShardOf([16]byte(id), shards) != at.Shard {
						t.Fatalf("attempt %d: an id of shard %d in shard %d", a, stream.ShardOf([16]byte(id), shards), at.Shard)
					}
				}
				key := keys[max(at.Shard, 1)-1]
				plaintext, err := key.Open(seal.Context{ManifestHash: hash, Attempt: a, Shard: at.Shard, StageKey: w.stage.Public(), Public: key.Public()}, &r)
				must(t, err)
				size := len(plaintext) / len(r.Ids)
				for i, id := range r.Ids {
					got := plaintext[i*size : (i+1)*size]
					if old := counts[[16]byte(id)]; attempt > 0 && !bytes.Equal(old, got) {
						t.Fatalf("attempt %d: other counts, or an id that is new", a)
					}
					counts[[16]byte(id)] = bytes.Clone(got)
				}
				users += len(r.Ids)
			}
			if users != 24 || len(counts) != 24 || (shards == 1) != used[0] {
				t.Errorf("attempt %d in %d shards: %d users, %d ids, shards used: %v", a, shards, users, len(counts), used)
			}
		}
		w.close(ctx, client.Closed{Round: 1, Attempt: nth(3), Manifest: hash, Cutoff: 1000})
		w.end(ctx, 1)
		group.Wait()
		s.audit(w)
	})
}

// TestShardsUnderFloors: a device believes no attempt in shards where the trust has floors, because the accountant counts
// those of one worker. It answers the next attempt, which has one.
func TestShardsUnderFloors(t *testing.T) {
	for _, trust := range []accounting.Trust{accounting.Shuffle, accounting.Pan, accounting.ShufflePan} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			w := newWorld(t, plan{rounds: 1, cohort: 4, sealed: true, trust: trust})
			hash := w.announce(ctx, 1)
			key, err := seal.NewRoundKey(w.task.Suite)
			must(t, err)
			open := w.openMessage(1, 1, hash)
			open.Shards = []*wire.Shard{{PublicKey: key.Public(), Instance: bytes.Repeat([]byte{1}, 16), Seat: 1}}
			open.HandoverKey = []byte("nothing to a device")
			w.put(ctx, w.name.Open(1, 1), w.stage, open)
			var group sync.WaitGroup
			s := newSpy(t, client.NewMemoryStore())
			group.Go(func() { _, _ = w.client(w.config(s)).Run(ctx, rows(4, false)) })
			time.Sleep(30 * time.Second)
			want := 4
			if trust.HasFloors() {
				want = 0
			}
			n := 0
			for _, m := range w.broker.Dump() {
				if m.Stream == stream.Reports {
					n++
				}
			}
			if n != want || len(s.draws) != want {
				t.Errorf("%v: %d reports in an attempt of two shards, %d events charged, want %d", trust, n, len(s.draws), want)
			}
			w.open(ctx, 1, 2, hash)
			time.Sleep(30 * time.Second)
			if n := w.reports(1, 2); n != 4 {
				t.Errorf("%v: %d reports in an attempt of one shard, want 4", trust, n)
			}
			stop()
			group.Wait()
		})
	}
}

// TestForgedShardKey: an Open with a key that is none is passed over as a whole.
func TestForgedShardKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w := newWorld(t, plan{rounds: 1, cohort: 4, sealed: true})
		open := w.openMessage(1, 1, w.announce(ctx, 1))
		open.Shards = []*wire.Shard{{PublicKey: []byte("short"), Instance: bytes.Repeat([]byte{1}, 16), Seat: 1}}
		open.HandoverKey = []byte("key")
		w.put(ctx, w.name.Open(1, 1), w.stage, open)
		var group sync.WaitGroup
		s := newSpy(t, client.NewMemoryStore())
		group.Go(func() { _, _ = w.client(w.config(s)).Run(ctx, rows(4, false)) })
		time.Sleep(30 * time.Second)
		if len(s.draws) != 0 {
			t.Errorf("%d events were charged for it", len(s.draws))
		}
		for _, m := range w.broker.Dump() {
			if m.Stream == stream.Reports {
				t.Errorf("a report on %s", m.Subject)
			}
		}
		stop()
		group.Wait()
	})
}
