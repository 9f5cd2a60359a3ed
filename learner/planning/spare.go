package planning

// spareShare is the number of users of a practical plan for each spare user. Users who report to a full round, or who
// leave, have paid and are in no batch: measured, 0.2 to 0.8 % of them where single devices report beside a gateway
// (docs/measured/performance.md), and none where gateways report alone.
const spareShare = 100

// spareOf returns the number of spare users among n users of a practical plan, at least one. They are in no round's
// cohort, so every round fills even if as many users are lost. They are not charged while none is lost.
func spareOf(n uint64) uint64 { return n/spareShare + min(1, n%spareShare) }

// takeOff removes n users from the last of nondecreasing cohorts, and makes cohorts equal that would otherwise
// decrease. The cohorts must have more than n users together.
func takeOff(cohorts []uint64, n uint64) {
	var sum uint64
	for first := len(cohorts) - 1; first >= 0; first-- {
		sum += cohorts[first]
		equal := uint64(len(cohorts) - first)
		if first > 0 && (sum <= n || (sum-n)/equal < cohorts[first-1]) {
			continue
		}
		for i := range cohorts[first:] {
			cohorts[first+i] = (sum - n) / equal
			sum, equal = sum-cohorts[first+i], equal-1
		}
		return
	}
}
