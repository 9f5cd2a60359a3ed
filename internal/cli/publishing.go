package cli

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/panlearn/panlearn/stream/client"
)

// Publishing shows the progress of a publisher: one line on a terminal, nothing elsewhere. As a writer it takes log
// lines, which go above that line.
type Publishing struct {
	out   io.Writer
	bars  *mpb.Progress
	bar   *mpb.Bar
	since time.Time
	last  atomic.Pointer[client.Progress]
}

// NewPublishing shows progress on w if that is a terminal.
func NewPublishing(w io.Writer) *Publishing {
	p := &Publishing{out: w, since: time.Now()}
	p.last.Store(&client.Progress{})
	if f, ok := w.(*os.File); ok && Terminal(f) {
		p.bars = mpb.New(mpb.WithOutput(f), mpb.WithWidth(4))
		p.bar = p.bars.AddSpinner(0, mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.line() })))
	}
	return p
}

// Write implements io.Writer.
func (p *Publishing) Write(line []byte) (int, error) {
	if p.bars != nil {
		return p.bars.Write(line)
	}
	return p.out.Write(line)
}

// Show is what client.Config.Progress wants.
func (p *Publishing) Show(now client.Progress) { p.last.Store(&now) }

func (p *Publishing) line() string {
	now := p.last.Load()
	rate := float64(now.Summary.Counted) / time.Since(p.since).Seconds()
	return fmt.Sprintf(" round %d  ours %d of %d  counted %d  uncounted %d  unknown %d  %.0f events/s",
		now.Round, now.Joined, now.Cohort, now.Summary.Counted, now.Summary.Uncounted, now.Summary.Unknown, rate)
}

// Close leaves the line as it is.
func (p *Publishing) Close() {
	if p.bars != nil {
		p.bar.Abort(false)
		p.bars.Shutdown()
	}
}
