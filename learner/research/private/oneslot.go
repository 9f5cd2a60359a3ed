package private

// A slotter draws the records of a call with one slot a record: each record is selected with the sampler's rate,
// independently, and is then in one of the slots, uniformly. A record is so in at most one step of a call.
type slotter struct {
	sampler *sampler
	slots   [][]int
}

func newSlotter(s *sampler, slots int) *slotter {
	return &slotter{sampler: s, slots: make([][]int, slots)}
}

// draw returns the next call's slots, whose memory the one after it reuses.
func (s *slotter) draw() [][]int {
	for j := range s.slots {
		s.slots[j] = s.slots[j][:0]
	}
	for _, i := range s.sampler.draw() {
		j := s.sampler.rng.IntN(len(s.slots))
		s.slots[j] = append(s.slots[j], i)
	}
	return s.slots
}
