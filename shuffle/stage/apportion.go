package stage

// A share is one shard as the owner of the attempt knows it, once its worker obeys the newest table.
type share struct {
	users  uint64 // counted
	cap    uint64 // pauses when users has reached it
	hungry bool   // paused, and more are waiting
}

// worst is how many users the shard can have before it pauses. A bundle is counted whole, so the last one may pass the
// cap by all its users but one.
func (s share) worst(bundle uint64) uint64 {
	if s.users >= s.cap {
		return s.users
	}
	return s.cap + bundle - 1
}

// mostShards is how many workers a cohort can be shared among: each must have room for a bundle.
func mostShards(cohort, bundle uint64) uint64 { return max(1, cohort/bundle) }

// apportion answers the first caps: even, and such that not all shards together can pass the cohort by more than one
// bundle less one user, which is what a single worker may.
func apportion(cohort, bundle uint64, shards int) []uint64 {
	n := uint64(shards)
	all := cohort - (n-1)*(bundle-1)
	caps := make([]uint64, n)
	for i := range caps {
		caps[i] = all / n
		if uint64(i) < all%n {
			caps[i]++
		}
	}
	return caps
}

// rebalance answers the next caps while users are missing, or false where the standing ones will do. It keeps the bound
// of apportion whichever of the two tables a worker obeys: it gives away only what nobody can take any more, and takes
// room from those who are not hungry only to give it later, when they have said that they obey.
func rebalance(cohort, bundle uint64, shares []share) (caps []uint64, changed bool) {
	var users, worst uint64
	var hungry []int
	for i, s := range shares {
		caps = append(caps, s.cap)
		users, worst = users+s.users, worst+s.worst(bundle)
		if s.hungry && s.users >= s.cap {
			hungry = append(hungry, i)
		}
	}
	if len(hungry) == 0 || users >= cohort {
		return caps, false
	}
	if free := cohort + bundle - 1 - min(worst, cohort+bundle-1); free >= bundle {
		hungry = hungry[:min(uint64(len(hungry)), free/bundle)]
		for _, i := range hungry {
			caps[i] = shares[i].users + free/uint64(len(hungry)) - (bundle - 1)
		}
		return caps, true
	}
	// Near the end every place counts; before it, who is slow now keeps something for later.
	missing, keep := cohort-users, uint64(0)
	if n := uint64(len(shares)); missing/n/4 >= bundle {
		keep = missing / n / 4
	}
	for i, s := range shares {
		if s.users < s.cap && s.cap > s.users+keep {
			caps[i], changed = s.users+keep, true
		}
	}
	return caps, changed
}
