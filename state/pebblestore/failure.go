package pebblestore

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/panlearn/panlearn/state"
)

// failure is a one-way switch from working to failed. It implements Pebble's logger, through which Pebble sets it.
type failure struct {
	log  *slog.Logger
	once sync.Once
	ch   chan struct{} // closed once err is set
	err  error         // read only after ch is closed
}

var _ pebble.Logger = (*failure)(nil)

func newFailure(log *slog.Logger) *failure {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	return &failure{log: log, ch: make(chan struct{})}
}

// Infof logs at debug level.
func (f *failure) Infof(format string, args ...any) {
	if f.log.Enabled(context.Background(), slog.LevelDebug) {
		f.log.Debug("pebble: " + fmt.Sprintf(format, args...))
	}
}

// Errorf logs at error level.
func (f *failure) Errorf(format string, args ...any) {
	f.log.Error("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf breaks the store and never returns. Returning would let Pebble report a lost commit as done, and
// runtime.Goexit would run Pebble's deferred functions, which release locks and let other goroutines go on
// with a state that Pebble itself calls fatal.
func (f *failure) Fatalf(format string, args ...any) {
	f.fail(fatal(format, args))
	select {}
}

// fatal returns the formatted error. It wraps every error among args however the format prints it, so that a caller
// can tell a full disk from a broken one.
func fatal(format string, args []any) error {
	e := &fatalError{text: fmt.Sprintf(strings.ReplaceAll(format, "%w", "%v"), args...)}
	for _, a := range args {
		if err, ok := a.(error); ok {
			e.causes = append(e.causes, err)
		}
	}
	return e
}

type fatalError struct {
	text   string
	causes []error
}

func (e *fatalError) Error() string { return e.text }

func (e *fatalError) Unwrap() []error { return e.causes }

// fail breaks the store; only the first reason is kept.
func (f *failure) fail(err error) error {
	f.once.Do(func() {
		f.err = fmt.Errorf("%w: %w; stop the process, then check the disk", state.ErrFailed, err)
		f.log.Error("state store failed", "error", err)
		close(f.ch)
	})
	<-f.ch
	return f.err
}

// check returns the failure, or nil while the store works.
func (f *failure) check() error {
	select {
	case <-f.ch:
		return f.err
	default:
		return nil
	}
}

// guard runs work, which calls into Pebble, on a goroutine of its own, because it may end in Fatalf. It returns
// work's error, or the failure as soon as there is one. A panic out of Pebble (a log writer that is already
// broken panics) is a failure too.
func (f *failure) guard(work func() error) error {
	if err := f.check(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				f.fail(fatal("panic: %v", []any{p}))
			}
		}()
		done <- work()
	}()
	select {
	case err := <-done:
		return err
	case <-f.ch:
		return f.err
	}
}
