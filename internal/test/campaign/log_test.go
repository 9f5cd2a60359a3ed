package campaign

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// A log keeps the last lines that a process logged.
type log struct {
	mu    sync.Mutex
	lines []string
}

const logged = 6

// Write implements io.Writer.
func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines[max(0, len(l.lines)+1-logged):], string(bytes.TrimSpace(line)))
	return len(line), nil
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n\t\t")
}

func (l *log) logger(begun time.Time) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.String(a.Key, fmt.Sprint(a.Value.Time().Sub(begun)))
		}
		return a
	}}))
}
