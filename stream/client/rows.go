package client

import "github.com/panlearn/panlearn/learner/convex"

// vector is what the event says, worked out now at the latest.
func (e *event) vector() convex.Example {
	if e.work != nil {
		e.example, e.work = e.work(), nil
	}
	return e.example
}
