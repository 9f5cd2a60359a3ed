// Package panics turns panics into errors, so that one of many tasks of a process fails and the others go on.
package panics

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
)

// An Error describes a panic. It has the text of the runtime's own panics, without its numbers: an index may be
// computed from what a report holds. Of any other value it has the type alone, because such a text may hold anything.
type Error struct {
	Text string
	At   []string // functions and lines, from that which panicked outwards
}

// Error implements error. It names the innermost functions.
func (e *Error) Error() string {
	return fmt.Sprintf("a fault of the program: %s (%s)", e.Text, strings.Join(e.At[:min(len(e.At), 3)], ", called by "))
}

var numbers = regexp.MustCompile(`[0-9]+`)

// Caught calls f and returns its error, or an *Error where it panics. It does not catch what panics in a goroutine that
// f starts: see [First].
func Caught(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = of(v)
		}
	}()
	return f()
}

// of describes a panic while it is being recovered. It returns one that was caught before as it was.
func of(v any) *Error {
	if e, is := v.(*Error); is {
		return e
	}
	e := &Error{Text: fmt.Sprintf("a panic of type %T", v)}
	if v, is := v.(runtime.Error); is {
		e.Text = numbers.ReplaceAllString(v.Error(), "#")
	}
	var at [64]uintptr
	frames := runtime.CallersFrames(at[:runtime.Callers(2, at[:])])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicked, e.At = true, nil
		case panicked && f.File != "" && !strings.HasPrefix(f.Function, "runtime."):
			e.At = append(e.At, fmt.Sprintf("%s:%d", f.Function, f.Line))
		}
		if !more {
			return e
		}
	}
}

// First keeps the first panic of several goroutines. The zero value has none. It is safe for concurrent use.
type First struct{ err atomic.Pointer[Error] }

// Do calls f, and keeps its panic.
func (p *First) Do(f func()) {
	err := Caught(func() error {
		f()
		return nil
	})
	if err != nil {
		p.err.CompareAndSwap(nil, err.(*Error))
	}
}

// Any reports whether a panic is kept.
func (p *First) Any() bool { return p.err.Load() != nil }

// Again panics with the panic that is kept, if there is one.
func (p *First) Again() {
	if err := p.err.Load(); err != nil {
		panic(err)
	}
}
