package cluster

import (
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/procs"
)

// TestLines: the lines between the processes and their server fail in each way that networks do: connections break and
// nobody gets through for a while; connections stay open and nothing passes, so that only silence shows it; everything
// passes, very slowly. The task goes on after each, by the same processes.
func TestLines(t *testing.T) {
	t.Parallel()
	s := procs.StartServer(t, programs, procs.ServerOptions{})
	learner, stage, publisher := newLine(t, s.URL()), newLine(t, s.URL()), newLine(t, s.URL())
	p := plan{rounds: 3, cohort: 20, lease: 6 * time.Second}
	long := longtest.Run(t, "connections that stand and answer nothing, each role alone, and slow ones")
	if long {
		p = plan{rounds: 12, cohort: 40, lease: 6 * time.Second}
	}
	d := deploy(t, p, s.URL(), addresses{learner.url(), [2]string{stage.url(), s.URL()},
		[publishers]string{publisher.url(), s.URL()}}, 1)
	lines := []*line{learner, stage, publisher}
	d.reached(1)
	for _, l := range lines {
		l.cut()
	}
	last(2 * time.Second)
	for _, l := range lines {
		l.mend()
	}
	if long {
		for i, l := range lines {
			d.reached(2 + i)
			l.silence()
			last(8 * time.Second) // longer than a lease
			l.mend()
		}
		d.reached(5)
		for _, l := range lines {
			l.slow(8 << 10)
		}
		d.reached(8)
		for _, l := range lines {
			l.slow(0)
			l.silence() // all at once
			l.mend()
		}
	}
	d.audit()
}
