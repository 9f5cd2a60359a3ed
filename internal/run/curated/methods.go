package curated

import (
	"slices"

	"github.com/panlearn/panlearn/learner/oneplace"
	"github.com/panlearn/panlearn/learner/research/curator"
	"github.com/panlearn/panlearn/learner/research/private"
	"github.com/panlearn/panlearn/learner/research/resque"
)

// Methods returns all methods of one process that has all rows, in the order in which they are compared. Their names
// are those that tasks accept, schedule.CuratedNames.
func Methods() []oneplace.Method {
	return slices.Concat(curator.OnePlace(), private.OnePlace(), resque.OnePlace())
}

// Of returns the method of a name, and false where there is none.
func Of(name string) (oneplace.Method, bool) {
	for _, m := range Methods() {
		if m.Name == name {
			return m, true
		}
	}
	return oneplace.Method{}, false
}
