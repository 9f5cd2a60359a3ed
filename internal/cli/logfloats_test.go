package cli

import (
	"log/slog"
	"strings"
	"testing"
)

// TestLogFloats: six digits of every number in a log, text or JSON; an epsilon or a delta is rounded to a bound.
func TestLogFloats(t *testing.T) {
	for format, want := range map[string]string{
		"text": "loss=0.490714 epsilon_spent=0.986941 delta=1.00001e-06 whole=3 group.x=0.333333",
		"json": `"loss":0.490714,"epsilon_spent":0.986941,"delta":0.00000100001,"whole":3,"group":{"x":0.333333}`,
	} {
		var out strings.Builder
		logger, err := (&Log{Level: "info", Format: format}).Logger(&out)
		if err != nil {
			t.Fatal(err)
		}
		logger.Info("round", "loss", 0.4907141999491045, "epsilon_spent", 0.9869401999491045, "delta", 1.0000000000001e-6,
			"whole", 3.0,
			slog.Group("group", "x", 1.0/3))
		if got := out.String(); !strings.Contains(got, want) {
			t.Errorf("%s: %s want %s", format, got, want)
		}
	}
}
