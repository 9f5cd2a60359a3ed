//go:build !windows

package cli

import (
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"
)

// TestSteer: SIGUSR1 switches the log to debug and back, and from debug to info and back.
func TestSteer(t *testing.T) {
	for level, other := range map[string]slog.Level{"info": slog.LevelDebug, "error": slog.LevelDebug,
		"debug": slog.LevelInfo} {
		l := Log{Level: level}
		reader, writer := io.Pipe()
		logger, err := l.Logger(writer)
		if err != nil {
			t.Fatal(err)
		}
		own := l.level.Level()
		stop := l.Steer(logger)
		line := make([]byte, 1<<10)
		for _, want := range []slog.Level{other, own} {
			if err := syscall.Kill(syscall.Getpid(), syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
			n, err := reader.Read(line) // the line that says so, at a level that is shown
			if err != nil || !strings.Contains(string(line[:n]), "now="+want.String()+"\n") {
				t.Errorf("%s: %q, %v, want %v", level, line[:n], err, want)
			}
			if l.level.Level() != want {
				t.Errorf("%s: the level is %v, want %v", level, l.level.Level(), want)
			}
		}
		stop()
	}
}
