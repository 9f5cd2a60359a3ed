package stage

import (
	"testing"

	"pgregory.net/rapid"
)

// TestCapsNeverOvershootAndAlwaysFill: whatever arrives where, in bundles of any size, all shards together never pass the
// cohort by more than a bundle less one, under the old table or the new; and where enough users wait, the cohort is full
// after a bounded number of tables. Without bundles it is met exactly.
func TestCapsNeverOvershootAndAlwaysFill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bundle := rapid.Uint64Range(1, 20).Draw(t, "bundle")
		shards := rapid.IntRange(2, 5).Draw(t, "shards")
		cohort := rapid.Uint64Range(uint64(shards)*bundle, 3000).Draw(t, "cohort")
		if mostShards(cohort, bundle) < uint64(shards) {
			t.Fatalf("cohort %d in bundles of %d for %d shards", cohort, bundle, shards)
		}
		shares, waiting := make([]share, shards), make([]uint64, shards)
		for i, c := range apportion(cohort, bundle, shards) {
			shares[i].cap = c
		}
		// The users who come are exactly enough, or more, anywhere.
		for left := cohort + rapid.SampledFrom([]uint64{0, 1, cohort, 9 * cohort}).Draw(t, "too many"); left > 0; {
			n := min(left, rapid.Uint64Range(1, 3*cohort).Draw(t, "some"))
			waiting[rapid.IntRange(0, shards-1).Draw(t, "where")] += n
			left -= n
		}
		total := func() (users uint64) {
			for _, s := range shares {
				users += s.users
			}
			return users
		}
		// take lets a worker count under a cap; the size of every bundle is the sender's.
		take := func(i int, cap uint64) {
			for s := &shares[i]; s.users < cap && waiting[i] > 0; {
				n := min(waiting[i], rapid.Uint64Range(1, bundle).Draw(t, "size"))
				s.users, waiting[i] = s.users+n, waiting[i]-n
			}
		}
		for tables := 0; total() < cohort; tables++ {
			if tables > 100 {
				t.Fatalf("stuck: %+v, waiting %v", shares, waiting)
			}
			for i := range shares {
				if rapid.IntRange(0, 3).Draw(t, "slow") > 0 || tables > 40 {
					take(i, shares[i].cap)
				}
				shares[i].hungry = waiting[i] > 0 && shares[i].users >= shares[i].cap
			}
			caps, changed := rebalance(cohort, bundle, shares)
			if !changed {
				continue
			}
			for i := range shares {
				// The worker may go on under the old table for a while.
				take(i, max(shares[i].cap, caps[i]))
				shares[i].cap = caps[i]
			}
			if users := total(); users > cohort+bundle-1 {
				t.Fatalf("%d users in a cohort of %d, bundles of %d", users, cohort, bundle)
			}
		}
		if users := total(); bundle == 1 && users != cohort {
			t.Fatalf("%d users, want %d", users, cohort)
		}
	})
}
