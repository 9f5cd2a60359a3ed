package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// flushPatience is how long Close waits for a collector.
const flushPatience = 2 * time.Second

// A Tracer sends spans to a collector. A nil one makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	spans    trace.Tracer
	task     string
}

// New returns a tracer of a task's role, such as "panlearn learner", that sends to a collector of OTLP over HTTP at a URL such as
// http://127.0.0.1:4318. A collector that does not answer costs spans and a warning, never a round.
func New(role, task, collector string, log *slog.Logger) (*Tracer, error) {
	u, err := url.Parse(collector)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("%q is no URL of a collector, such as http://127.0.0.1:4318", collector)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("a trace was not taken", "collector", u.Redacted(), "error", err) }))
	about := resource.NewSchemaless(attribute.String("service.name", role), attribute.String("panlearn.task", task))
	return newTracer(task, sdk.WithBatcher(newExporter(u.JoinPath("v1", "traces").String())), sdk.WithResource(about)), nil
}

func newTracer(task string, options ...sdk.TracerProviderOption) *Tracer {
	provider := sdk.NewTracerProvider(append(options, sdk.WithIDGenerator(ids{}))...)
	return &Tracer{provider: provider, spans: provider.Tracer("github.com/panlearn/panlearn"), task: task}
}

// Close sends what is left, for at most flushPatience.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushPatience)
	defer cancel()
	err := t.provider.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil // the collector's loss
	}
	return err
}

// A root is the ids of a round's trace and of its first span.
type root struct {
	trace trace.TraceID
	span  trace.SpanID
}

func rootOf(task string, round uint64) (out root) {
	h := sha256.New()
	fmt.Fprintf(h, "panlearn round trace\x00%s\x00", task)
	h.Write(binary.BigEndian.AppendUint64(nil, round))
	sum := h.Sum(nil)
	copy(out.trace[:], sum)
	copy(out.span[:], sum[len(out.trace):])
	return out
}

// under is a context whose spans belong to a round that another process began.
func (t *Tracer) under(round uint64) context.Context {
	r := rootOf(t.task, round)
	return trace.ContextWithRemoteSpanContext(context.Background(),
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: r.trace, SpanID: r.span, TraceFlags: trace.FlagsSampled, Remote: true}))
}

type rootKey struct{}

// ids gives a round's first span the ids that its context carries, and others random ones.
type ids struct{}

func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if r, ok := ctx.Value(rootKey{}).(root); ok {
		return r.trace, r.span
	}
	var r root
	_, _ = rand.Read(r.trace[:]) // never fails
	_, _ = rand.Read(r.span[:])
	return r.trace, r.span
}

func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = rand.Read(id[:])
	return id
}
