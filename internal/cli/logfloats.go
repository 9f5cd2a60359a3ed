package cli

import (
	"log/slog"
	"strconv"
	"strings"
)

// logDigits are the significant digits of a number in the log, as where commands print it.
const logDigits = 6

// shortFloats has the log show numbers with logDigits digits. An epsilon or a delta is a bound, and stays one: it is rounded up.
func shortFloats(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindFloat64 {
		return a
	}
	x := a.Value.Float64()
	text := strconv.FormatFloat(x, 'g', logDigits, 64)
	if strings.Contains(a.Key, "epsilon") || strings.Contains(a.Key, "delta") {
		text = Upper(x, logDigits)
	}
	if short, err := strconv.ParseFloat(text, 64); err == nil {
		a.Value = slog.Float64Value(short)
	}
	return a
}
