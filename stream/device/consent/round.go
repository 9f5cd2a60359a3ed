package consent

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// CheckRound decides whether the device takes part in a round of its task. The caller has verified the Round under the
// task's learner key; known is the manifest hash of a round of this number that the device joined, nil if none.
func (a *Agreement) CheckRound(r *wire.Round, hash stream.Hash, known *stream.Hash) error {
	field := func(name string) string { return fmt.Sprintf("round %d: %s", r.Round, name) }
	if err := stream.Check(r); err != nil {
		return Refuse(field("message"), "malformed: "+err.Error(), "a well-formed round")
	}
	// What a round does not say is the plan's, and so the pinned hash's.
	at, err := manifest.Follows(a.Task, a.Hash, r)
	if err != nil {
		return Refuse(field("parameters"), "not the task's: "+err.Error(), "what the task fixes")
	}
	if known != nil && *known != hash {
		return Refuse(field("manifest hash"), fmt.Sprintf("%x", hash), "%x, which this device answered before", *known)
	}
	radius := a.Set.Radius()
	if at.Framed() { // and the set in coordinates of its own
		radius = convex.MaxScale
		if err := a.Practical.CheckFrame(manifest.Frame(r.Frame), at.Point() == 0); err != nil {
			return Refuse(field("frame"), err.Error(), "one of the declared features, finite and of sane size")
		}
	}
	norm := convex.Norm(r.Point)
	if math.IsNaN(norm) || norm > radius*(1+tolerance) {
		return Refuse(field("point"), fmt.Sprintf("of norm %v", norm), "finite, of norm at most %v", radius)
	}
	_, err = a.afford(fmt.Sprintf("round %d", r.Round), at)
	return err
}

// CheckOrder refuses a round that no honest learner announces after another: steps come one after the other. A void
// round repeats its step, except in an interactive phase, where all rounds count. The frame of gradients stays the
// same, except in an adaptive phase, where clips follow the stream: a device divides by the announced clip, so that no
// frame changes what a round costs.
func (a Announcement) CheckOrder(old, r *wire.Round) error {
	at, _ := manifest.PhaseOf(a.Task.Plan, old.Step)
	least := old.Step
	if at.Interactive() {
		least++
	}
	switch most := old.Step + (r.Round - old.Round); {
	case r.Round <= old.Round:
		return nil // the same, or one that nobody looks at any more
	case r.Step < least || r.Step > most:
		return Refuse(fmt.Sprintf("round %d: step", r.Round), r.Step, "%d to %d, after step %d in round %d", least, most,
			old.Step, old.Round)
	case len(old.Point) > 0 && at.Phase.GetTop() == 0 && !proto.Equal(old.Frame, r.Frame):
		return Refuse(fmt.Sprintf("round %d: frame", r.Round), "another", "that of round %d", old.Round)
	}
	return nil
}
