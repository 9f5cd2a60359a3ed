package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// Steer has SIGUSR1 switch the log of a long-lived command between its level and debug, or, where its level is debug, info, until stop
// is called. The log that Logger made last is meant.
func (l *Log) Steer(logger *slog.Logger) (stop func()) {
	own := l.level.Level()
	other := slog.LevelDebug
	if own <= other {
		other = slog.LevelInfo
	}
	signals, over, done := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, syscall.SIGUSR1)
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
