package cli

import (
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/panlearn/panlearn/internal/tracing"
)

// Traces is where the traces of rounds go: nowhere, unless asked.
type Traces struct{ Collector string }

// Flags adds the flag of the traces.
func (t *Traces) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&t.Collector, "otlp", "", "`URL` of an OpenTelemetry collector for traces of rounds, OTLP over HTTP, such as http://127.0.0.1:4318")
}

// Tracer returns the tracer of a role and task, nil if the flag asks for none, and what sends the rest at the end.
func (t *Traces) Tracer(role, task string, log *slog.Logger) (*tracing.Tracer, func(), error) {
	if t.Collector == "" {
		return nil, func() {}, nil
	}
	out, err := tracing.New(role, task, t.Collector, log)
	if err != nil {
		return nil, nil, Usagef("--otlp: %w", err)
	}
	return out, func() {
		if err := out.Close(); err != nil {
			log.Warn("the last traces were not sent", "error", err)
		}
	}, nil
}
