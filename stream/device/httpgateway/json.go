package httpgateway

import (
	"log/slog"
	"sync/atomic"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/stream/device/consent"
)

// JSON makes examples of events in JSON, as a gateway does of those that are posted, for programs that hold a client
// themselves. Its methods may be called from any goroutine.
type JSON struct {
	mapper mapper
	log    *slog.Logger
	unfit  atomic.Uint64
}

// newJSON returns the JSON of a task that a client agreed to. It refuses what a gateway refuses, see [Check].
func newJSON(a *consent.Agreement, log *slog.Logger) (*JSON, error) {
	j := &JSON{log: log}
	if j.log == nil {
		j.log = slog.New(slog.DiscardHandler)
	}
	return j, j.mapper.use(a)
}

// Example returns the example of an event, an object with a member for each column and the label. It never fails: an
// event that does not fit, such as one with a text where a number belongs, is no example of the task, which a client
// sends as the zero vector; it takes a row's mapping all the same, and the log says why, of the first 20, without its
// content. An error that a program acts on would let content decide who takes part.
//
// Call it in the function of [device.Device.PublishFunc], and give the client's Config [Work].
func (j *JSON) Example(event []byte) convex.Example {
	e, err := j.mapper.parsedEvent(event)
	if err == nil {
		return e
	}
	_ = j.mapper.mapRow(j.mapper.features.Decoy(), new(convex.Example))
	noteUnfit(j.log, &j.unfit, err)
	return invalid()
}
