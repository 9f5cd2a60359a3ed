package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// sendPatience is how long a collector may take for a batch of spans.
const sendPatience = 5 * time.Second

// An exporter posts spans as OTLP in JSON (opentelemetry.io/docs/specs/otlp, OTLP/HTTP). OpenTelemetry's own exporters link gRPC, which
// makes the program of devices half as large again. What is not taken is not sent again.
type exporter struct {
	url    string
	client *http.Client
}

func newExporter(url string) *exporter {
	return &exporter{url: url, client: &http.Client{Timeout: sendPatience}}
}

// ExportSpans implements sdk.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	list := make([]any, len(spans))
	for i, s := range spans {
		list[i] = spanOf(s)
	}
	first := spans[0] // all are of one provider: one resource and one scope
	body, err := json.Marshal(object{"resourceSpans": []any{object{
		"resource":   object{"attributes": attributesOf(first.Resource().Attributes())},
		"scopeSpans": []any{object{"scope": object{"name": first.InstrumentationScope().Name}, "spans": list}}}}})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s", resp.Status)
	}
	return nil
}

// Shutdown implements sdk.SpanExporter.
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}

type object map[string]any

const internalKind = 1 // SPAN_KIND_INTERNAL

func spanOf(s sdk.ReadOnlySpan) object {
	at := s.SpanContext()
	out := object{"traceId": at.TraceID().String(), "spanId": at.SpanID().String(), "name": s.Name(), "kind": internalKind,
		"startTimeUnixNano": strconv.FormatInt(s.StartTime().UnixNano(), 10), "endTimeUnixNano": strconv.FormatInt(s.EndTime().UnixNano(), 10),
		"attributes": attributesOf(s.Attributes())}
	if parent := s.Parent().SpanID(); parent.IsValid() {
		out["parentSpanId"] = parent.String()
	}
	if status := s.Status(); status.Code == codes.Error {
		out["status"] = object{"code": 2, "message": status.Description} // STATUS_CODE_ERROR
	}
	return out
}

func attributesOf(list []attribute.KeyValue) []any {
	out := make([]any, len(list))
	for i, a := range list {
		out[i] = object{"key": string(a.Key), "value": valueOf(a.Value)}
	}
	return out
}

func valueOf(v attribute.Value) object {
	switch v.Type() {
	case attribute.INT64:
		return object{"intValue": strconv.FormatInt(v.AsInt64(), 10)}
	case attribute.FLOAT64:
		return object{"doubleValue": v.AsFloat64()}
	case attribute.BOOL:
		return object{"boolValue": v.AsBool()}
	}
	return object{"stringValue": v.String()}
}
