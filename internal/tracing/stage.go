package tracing

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/panlearn/panlearn/shuffle/stage"
)

// Stage returns an observer that tells another one and makes a span of every attempt, from its opening to its batch or its death, below
// the round's.
func (t *Tracer) Stage(other stage.Observer) stage.Observer {
	var open trace.Span
	out := other
	end := func(set func()) {
		if open != nil {
			set()
			open.End()
			open = nil
		}
	}
	out.Opened = func(round, attempt uint64) {
		end(func() { open.SetStatus(codes.Error, "another attempt was opened") })
		_, open = t.spans.Start(t.under(round), "attempt", trace.WithAttributes(attribute.Int64("panlearn.round", int64(round)),
			attribute.Int64("panlearn.attempt", int64(attempt))))
		if other.Opened != nil {
			other.Opened(round, attempt)
		}
	}
	out.Dropped = func(round, attempt uint64) {
		end(func() { open.SetStatus(codes.Error, "the attempt died") })
		if other.Dropped != nil {
			other.Dropped(round, attempt)
		}
	}
	out.Released = func(round, users uint64, took time.Duration) {
		end(func() { open.SetAttributes(attribute.Int64("panlearn.users", int64(users))) })
		if other.Released != nil {
			other.Released(round, users, took)
		}
	}
	return out
}
