package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// The log repeats a publisher's progress after these times: the first if it changed, the second if it did
// not.
const (
	standingChanged = 10 * time.Second
	standingSame    = time.Minute
)

// A Look returns the progress of a publisher: counts has numbers, names and values in turn, waits describes what it
// waits for, and kind is waits without the parts that change by themselves.
type Look func() (counts []any, waits, kind string)

// publishing shows the progress of a publisher: two lines on a terminal, elsewhere a line of the log, at most every ten
// seconds. As a writer it takes log lines, which go above the two lines on a terminal.
type publishing struct {
	out  io.Writer
	look Look
	bars *mpb.Progress
	bar  []*mpb.Bar

	over, told chan struct{} // of the goroutine that logs; nil: none
}

// NewPublishing shows what look sees on w, if that is a terminal.
func NewPublishing(w io.Writer, look Look) *publishing {
	p := &publishing{out: w, look: look}
	f, ok := w.(*os.File)
	if !ok || !Terminal(f) {
		return p
	}
	p.bars = mpb.New(mpb.WithOutput(f), mpb.WithWidth(4))
	p.bar = []*mpb.Bar{
		p.bars.AddSpinner(0, mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.numbers() }))),
		p.bars.New(0, mpb.NopStyle(), mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.waits() }))),
	}
	return p
}

// Log logs the progress of the publisher, if no terminal shows it, until Close.
func (p *publishing) Log(log *slog.Logger) {
	if p.bars != nil || p.over != nil {
		return
	}
	p.over, p.told = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(p.told)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		var before, last string
		at, first := time.Now(), true
		for {
			select {
			case <-p.over:
				return
			case <-ticker.C:
			}
			counts, waits, kind := p.look()
			now := fmt.Sprint(counts, kind)
			since, rests := time.Since(at), now == before
			before = now
			switch {
			case first && rests: // do not report what ends within a second of the start
			case since < standingChanged, now == last && since < standingSame:
				continue
			}
			log.Info("publishing", append(counts, "waits_for", waits)...)
			last, at, first = now, time.Now(), false
		}
	}()
}

// Write implements io.Writer.
func (p *publishing) Write(line []byte) (int, error) {
	if p.bars != nil {
		return p.bars.Write(line)
	}
	return p.out.Write(line)
}

func (p *publishing) numbers() string {
	counts, _, _ := p.look()
	var b strings.Builder
	for i := 0; i+1 < len(counts); i += 2 {
		fmt.Fprintf(&b, "  %v %v", counts[i], counts[i+1])
	}
	return b.String()
}

func (p *publishing) waits() string {
	_, waits, _ := p.look()
	return " waits for " + waits
}

// Close leaves the lines as they are. It may be called again.
func (p *publishing) Close() {
	for _, b := range p.bar {
		b.Abort(false)
	}
	if p.bars != nil {
		p.bars.Shutdown()
	}
	if p.over != nil {
		close(p.over)
		<-p.told
		p.over = nil
	}
}
