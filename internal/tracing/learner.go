package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/panlearn/panlearn/learner/service"
)

// Learner returns the observer that makes a span of every round from its announcement to its commit, with the wait for the batch and the
// commit below it. A round that stands announced when the process ends has none.
func (t *Tracer) Learner() service.Observer {
	return &learner{tracer: t}
}

type learner struct {
	tracer *Tracer
	open   trace.Span
	under  context.Context
	since  time.Time
}

func (l *learner) Resumed(service.Progress) {}

func (l *learner) Announced(round, cohort uint64) {
	ctx := context.WithValue(context.Background(), rootKey{}, rootOf(l.tracer.task, round))
	l.since = time.Now()
	l.under, l.open = l.tracer.spans.Start(ctx, "round", trace.WithTimestamp(l.since), trace.WithNewRoot(),
		trace.WithAttributes(attribute.Int64("panlearn.round", int64(round)), attribute.Int64("panlearn.cohort", int64(cohort))))
}

func (l *learner) Applied(a service.Applied) {
	if l.open == nil {
		return
	}
	end, batch := l.since.Add(a.Took), l.since.Add(a.Waited)
	_, wait := l.tracer.spans.Start(l.under, "wait for the batch", trace.WithTimestamp(l.since))
	wait.End(trace.WithTimestamp(batch))
	_, commit := l.tracer.spans.Start(l.under, "step and commit", trace.WithTimestamp(batch))
	commit.End(trace.WithTimestamp(end))
	l.open.SetAttributes(attribute.Int64("panlearn.attempt", int64(a.Attempt)), attribute.Int64("panlearn.users", int64(a.BatchUsers)),
		attribute.Bool("panlearn.void", a.Void), attribute.Float64("panlearn.epsilon_spent", a.EpsilonSpent))
	l.open.End(trace.WithTimestamp(end))
	l.open = nil
}
