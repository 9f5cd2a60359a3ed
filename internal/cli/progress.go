package cli

import (
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/panlearn/panlearn/learner/service"
)

// Rounds shows the progress of a task: a bar on a terminal, nothing elsewhere (the log has a line a round). It
// is safe for concurrent use.
type Rounds struct {
	out  io.Writer
	bars *mpb.Progress

	mu   sync.Mutex // guards the fields below; never held while a bar is called, because the bar's goroutine calls line
	bar  *mpb.Bar
	last service.Progress
	fill string
}

// NewRounds shows progress on w if that is a terminal.
func NewRounds(w io.Writer) *Rounds {
	r := &Rounds{out: w}
	if f, ok := w.(*os.File); ok && Terminal(f) {
		r.show(mpb.WithOutput(f))
	}
	return r
}

func (r *Rounds) show(on ...mpb.ContainerOption) { r.bars = mpb.New(append(on, mpb.WithWidth(32))...) }

// Write passes a line of a log on, above the bar if there is one.
func (r *Rounds) Write(line []byte) (int, error) {
	if r.bars != nil {
		return r.bars.Write(line)
	}
	return r.out.Write(line)
}

// Observer returns the observer of a learner that moves the bar.
func (r *Rounds) Observer() service.Observer {
	return service.Observer{Resumed: r.resumed, Announced: func(_, cohort uint64) { r.Fill(0, cohort) }, Applied: r.applied}
}

func (r *Rounds) resumed(p service.Progress) {
	r.mu.Lock()
	r.last = p
	r.mu.Unlock()
	if r.bars == nil {
		return
	}
	counter := decor.CountersNoUnit("%d/%d")
	if p.Rounds == 0 { // without end
		counter = decor.CurrentNoUnit("%d")
	}
	bar := r.bars.AddBar(int64(p.Rounds),
		mpb.PrependDecorators(decor.Name("rounds "), counter),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return r.line() })))
	bar.SetCurrent(int64(p.Steps))
	r.mu.Lock()
	r.bar = bar
	r.mu.Unlock()
}

// Fill shows how many reports of the cohort are there.
func (r *Rounds) Fill(users, cohort uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fill = fmt.Sprintf("cohort %d/%d", users, cohort)
}

func (r *Rounds) applied(a service.Applied) {
	r.mu.Lock()
	r.last = a.Progress
	bar := r.bar
	r.mu.Unlock()
	if bar != nil {
		bar.SetCurrent(int64(a.Steps))
	}
}

func (r *Rounds) line() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf(" %s  counted %d  epsilon %s of %g", r.fill, r.last.Users, Upper(r.last.EpsilonSpent, 3),
		r.last.EpsilonBudget)
}

// Close leaves the bar as it is.
func (r *Rounds) Close() {
	r.mu.Lock()
	bar, bars := r.bar, r.bars
	r.mu.Unlock()
	if bar != nil {
		bar.Abort(false) // nothing, if it is complete
	}
	if bars != nil {
		bars.Shutdown()
	}
}
