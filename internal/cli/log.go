package cli

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Log configures the log of a command: to standard error, as text by default.
type Log struct {
	Level  string
	Format string // text or json; "" is text

	level slog.LevelVar // of the logger that Logger made
}

// Flags adds the flags of the log, with the default of its level.
func (l *Log) Flags(flags *pflag.FlagSet, level string) {
	flags.StringVar(&l.Format, "log-format", "text", "`FORMAT` of the log: text or json, one line for each event")
	flags.StringVar(&l.Level, "log-level", level, "`LEVEL` of the log on standard error: debug, info, warn, error")
}

// Logger returns a logger on w as set by the flags.
func (l *Log) Logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return nil, Usagef("--log-level %q: want debug, info, warn or error", l.Level)
	}
	l.level.Set(level)
	options := &slog.HandlerOptions{Level: &l.level, ReplaceAttr: shortFloats}
	switch l.Format {
	case "", "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, Usagef("--log-format %q: want text or json", l.Format)
}

// Steer lets SIGUSR1 switch the log that Logger made last, of a long-lived command, between its level and
// debug (info, if its level is debug), until stop is called. Windows has no such signal, and nothing switches
// there.
func (l *Log) Steer(logger *slog.Logger) (stop func()) {
	own := l.level.Level()
	other := slog.LevelDebug
	if own <= other {
		other = slog.LevelInfo
	}
	signals, over, done := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	notifySteer(signals)
	go func() {
		defer close(done)
		for {
			select {
			case <-over:
				return
			case <-signals:
			}
			own, other = other, own
			l.level.Set(own)
			logger.Log(context.Background(), max(own, slog.LevelInfo), "the level of the log is changed", "now", own.String())
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
		<-done
	}
}

// logDigits are the significant digits of a number in the log, as where commands print it.
const logDigits = 6

// shortFloats shortens the numbers of the log to logDigits digits. An epsilon or a delta is a bound, and
// stays one: it is rounded up.
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
