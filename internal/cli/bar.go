package cli

import (
	"io"
	"os"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A Bar shows how much of some work is done: on a terminal, and nothing elsewhere. The nil Bar shows nothing.
type Bar struct {
	bars *mpb.Progress
	bar  *mpb.Bar
}

// NewBar shows progress on w if that is a terminal.
func NewBar(w io.Writer, name string, total int) *Bar {
	f, ok := w.(*os.File)
	if !ok || !Terminal(f) {
		return nil
	}
	bars := mpb.New(mpb.WithOutput(f), mpb.WithWidth(32))
	return &Bar{bars, bars.AddBar(int64(total), mpb.PrependDecorators(decor.Name(name+" "), decor.CountersNoUnit("%d/%d")),
		mpb.AppendDecorators(decor.AverageETA(decor.ET_STYLE_GO)))}
}

// Set sets how much is done, and of how much.
func (b *Bar) Set(done, total int) {
	if b != nil {
		b.bar.SetTotal(int64(total), false)
		b.bar.SetCurrent(int64(done))
	}
}

// Close leaves the bar as it is.
func (b *Bar) Close() {
	if b != nil {
		b.bar.Abort(false) // nothing, if it is complete
		b.bars.Shutdown()
	}
}
