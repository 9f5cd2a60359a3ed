package stage

import (
	"time"

	"github.com/panlearn/panlearn/stream"
)

// A shelf keeps the sealed reports that a worker of a sharded attempt has fetched and may not open yet. What stays
// there comes again to somebody: nothing of it is acknowledged.
type shelf struct{ reports []stream.Delivery }

func (s *shelf) empty() bool { return len(s.reports) == 0 }

func (s *shelf) keep(rest []stream.Delivery) { s.reports = rest }

func (s *shelf) kept() []stream.Delivery {
	all := s.reports
	s.reports = nil
	return all
}

func (s *shelf) clear() {
	drop(s.reports)
	s.reports = nil
}

// drop overwrites reports that are done with: as long as the attempt's key lives, a sealed report that was left in memory
// is an open one to whoever looks.
func drop(reports []stream.Delivery) {
	for i := range reports {
		clear(reports[i].Data)
	}
	clear(reports)
}

// next is the step towards more reports until a time. A full worker takes one, to know whether it is hungry, and does
// not look at it.
func (s *shelf) next(a *attempt, prefetch int, until time.Time) step {
	todo := step{verb: fetch, shard: a.context.Shard, max: int(min(uint64(prefetch), a.room())), until: until}
	if !a.full() {
		return todo
	}
	if todo.max = 1; !s.empty() {
		todo.verb = wait
	}
	return todo
}
