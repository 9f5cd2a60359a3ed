//go:build !windows

package stage

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/shuffle"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// BenchmarkExamine is one report from its bytes to the totals, by suite and dimension: what a stage does on one core.
func BenchmarkExamine(b *testing.B) {
	for _, suite := range []wire.Suite{wire.Suite_SUITE_NONE, wire.Suite_SUITE_X25519, wire.Suite_SUITE_MLKEM768_X25519} {
		for _, dim := range []uint64{124, 4096} {
			b.Run(fmt.Sprintf("%v/dim=%d", suite, dim), func(b *testing.B) {
				w := newWorld(b, plan{cohort: dim, suite: suite})
				a, in := w.attempt(1)
				data := w.seal(in, [][16]byte{randomID()}, w.plaintext(0))
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					// The same report again: opened like every other one, then a duplicate, so that the cohort never
					// fills.
					if got := a.examine(w.message(in, 1, data)); got != Accepted && got != Duplicate {
						b.Fatal(got)
					}
				}
			})
		}
	}
}

// BenchmarkExamineTokens is BenchmarkExamine of reports that have a token: a new one each time, of 200 people, in an
// attempt that forgets them.
func BenchmarkExamineTokens(b *testing.B) {
	for _, grants := range []bool{false, true} {
		b.Run(fmt.Sprintf("tokens=%t", grants), func(b *testing.B) {
			const people = 200
			w := newWorld(b, plan{cohort: people, suite: wire.Suite_SUITE_X25519, grants: grants})
			a, in := w.attempt(1)
			var all [][]byte
			for u := range uint64(people) {
				all = append(all, w.seal(in, [][16]byte{randomID()}, w.plaintext(u)))
			}
			i := 0
			for b.Loop() {
				if i%(people-1) == 0 {
					b.StopTimer()
					a.taking.erase()
					var err error
					if a.mixer, err = shuffle.NewMixer(a.round.mixer); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
				if got := a.examine(w.message(in, 1, all[i%(people-1)])); got != Accepted {
					b.Fatal(got)
				}
				i++
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reports/s")
		})
	}
}

// BenchmarkRound is a round of sealed single reports, from the moment the stage may fetch them to its batch, with one
// worker and with two, one after the other. Sealing and publishing are done before. It needs two free processors:
//
//	go test ./shuffle/stage -run '^$' -bench Round -benchtime 9x -cpu 2
//
// Reported are medians: reports a second for each number of workers; the ratio of the two, pair by pair; and, with one
// worker, which share of all CPU time of the process, the broker in memory included, the same number of RoundKey.Open
// takes, timed alone after it.
func BenchmarkRound(b *testing.B) {
	for _, suite := range []wire.Suite{wire.Suite_SUITE_X25519, wire.Suite_SUITE_MLKEM768_X25519} {
		b.Run(suite.String(), func(b *testing.B) {
			var one, two, ratio, share []float64
			for range b.N {
				first, second := mixRound(b, suite, 1), mixRound(b, suite, 2)
				one, two = append(one, mixed/first.wall.Seconds()), append(two, mixed/second.wall.Seconds())
				ratio = append(ratio, first.wall.Seconds()/second.wall.Seconds())
				share = append(share, first.opening.Seconds()/first.cpu.Seconds())
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(one), "reports/s-one-worker")
			b.ReportMetric(median(two), "reports/s-two-workers")
			b.ReportMetric(median(ratio), "ratio")
			b.ReportMetric(median(share), "hpke-share")
		})
	}
}

// mixed is the number of users that BenchmarkRound mixes.
const mixed = 10_000

// mixing holds the times of a round: wall time, CPU time, and CPU time of its Open calls alone.
type mixing struct{ wall, cpu, opening time.Duration }

func mixRound(b *testing.B, suite wire.Suite, workers int) (took mixing) {
	w := newWorld(b, plan{cohort: mixed, suite: suite})
	w.params = randomizer.Params{Dim: 124, ClipNorm: 1, Levels: 1, Trials: 1, Coin: randomizer.Fair}
	w.task.Plan.Phases[0].Mechanism = manifest.Mechanism(w.params, 1)
	body, err := stream.Marshal(w.task)
	if err != nil {
		b.Fatal(err)
	}
	w.hash = stream.HashOf(body)
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	w.announce(ctx)
	c := w.config()
	c.Workers = workers
	queue := &gated{ReportReader: c.Reports, open: make(chan struct{})}
	c.Reports = queue
	done := make(chan struct{})
	c.Observer.Released = func(stream.Round, uint64, time.Duration) { close(done) }
	s := w.new(c)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	in := w.invited(ctx, 1, 0)
	all := w.sealed(in, mixed)
	w.deliver(ctx, all)
	began, used := time.Now(), cpuTime(b)
	close(queue.open)
	<-done
	took.wall, took.cpu = time.Since(began), cpuTime(b)-used
	stop()
	<-ended
	if got, _ := w.batch(1); got.Users != mixed || got.Attempt != 1 {
		b.Fatalf("%d users in attempt %d", got.Users, got.Attempt)
	}
	if workers == 1 {
		took.opening = w.opening(b, suite)
	}
	return took
}

// sealed returns the messages of n users, made on two processors.
func (w *world) sealed(in *invitation, n int) []stream.Outgoing {
	all := make([]stream.Outgoing, n)
	plaintext := w.params.Pack(nil, make([]uint32, w.params.Dim))
	var sealing sync.WaitGroup
	for part := range 2 {
		sealing.Go(func() {
			for i := part; i < n; i += 2 {
				id := randomID()
				all[i] = stream.Outgoing{Subject: w.name.Report(in.round, in.attempt), ID: id, Data: w.seal(in, [][16]byte{id},
					plaintext)}
			}
		})
	}
	sealing.Wait()
	return all
}

// opening returns the CPU time of Open alone for as many reports as a round mixes, from a tenth of them.
func (w *world) opening(b *testing.B, suite wire.Suite) time.Duration {
	a, in := w.attempt(1)
	reports := make([]wire.Report, mixed/10)
	for i, m := range w.sealed(in, len(reports)) {
		if err := stream.ReadReport(m.Data, &reports[i]); err != nil {
			b.Fatal(err)
		}
	}
	began := cpuTime(b)
	for i := range reports {
		if _, err := a.opener.key.Open(a.opener.context, &reports[i]); err != nil {
			b.Fatal(err)
		}
	}
	return 10 * (cpuTime(b) - began)
}

// cpuTime returns the processor time, user and system, that this process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
