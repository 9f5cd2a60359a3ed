package natsjs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
)

// serverLog hands the server's log lines to slog. The server's own logger exits the process on Fatalf; this one
// remembers the line for StartEmbedded.
type serverLog struct {
	log *slog.Logger

	mu    sync.Mutex
	first string // line of Fatalf
}

func (l *serverLog) line(level slog.Level, format string, v []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, fmt.Sprintf(format, v...), "from", "nats-server")
	}
}

func (l *serverLog) Noticef(format string, v ...any) { l.line(slog.LevelInfo, format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.line(slog.LevelWarn, format, v) }
func (l *serverLog) Errorf(format string, v ...any)  { l.line(slog.LevelError, format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.line(slog.LevelDebug, format, v) }

// Tracef drops protocol traces: they would carry payloads.
func (l *serverLog) Tracef(string, ...any) {}

func (l *serverLog) Fatalf(format string, v ...any) {
	l.line(slog.LevelError, format, v)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first == "" {
		l.first = fmt.Sprintf(format, v...)
	}
}

func (l *serverLog) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}
