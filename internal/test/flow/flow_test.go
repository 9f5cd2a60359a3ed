package flow

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
)

// A cell is one flow to measure, on a broker that syncs its files always or now and then.
type cell struct {
	setup
	syncs bool
}

func (c cell) String() string {
	sealing, form, storage := "unsealed", "single", ""
	if c.sealed {
		sealing = "sealed"
	}
	if c.bundle > 1 {
		form = fmt.Sprintf("bundles=%d", c.bundle)
	}
	switch {
	case c.memory:
		storage = "/in-memory"
	case c.syncs:
		storage = "/synced"
	}
	return fmt.Sprintf("d=%d/%s/%s%s", c.dim, sealing, form, storage)
}

func cells() (out []cell) {
	dims := []int{10, 100, 784}
	if testing.Short() {
		dims = dims[:1]
	}
	for _, dim := range dims {
		for _, sealed := range []bool{false, true} {
			for _, bundle := range []int{1, 64} {
				out = append(out, cell{setup: setup{dim: dim, sealed: sealed, bundle: bundle}})
			}
		}
	}
	bundles, single := setup{dim: 100, bundle: 64}, setup{dim: 100, sealed: true, bundle: 1}
	out = append(out, cell{setup: bundles, syncs: true}, cell{setup: single, syncs: true})
	bundles.memory, single.memory = true, true
	return append(out, cell{setup: bundles}, cell{setup: single})
}

// BenchmarkReports: publish, stage and batch of reports that were made before, as if the devices were elsewhere, as
// they are.
func BenchmarkReports(b *testing.B) {
	for _, c := range cells() {
		users := 131072
		switch { // some thousand messages, so that what a round costs beside its reports does not count
		case testing.Short():
			users = 256
		case c.sealed && c.bundle == 1:
			users = 2048
		case c.bundle == 1 || c.syncs:
			users = 16384
		case c.dim > 100:
			users = 65536
		}
		c.run(b, users, func(b *testing.B, d *deployment) func(round uint64) (time.Duration, error) {
			s := newSender(b, d)
			return func(round uint64) (time.Duration, error) { return s.fill(round, users, c.bundle) }
		})
	}
}

// BenchmarkGateway: the events of one gateway, mapped, encoded, charged durably, sealed and published, on the same
// cores as the rest.
func BenchmarkGateway(b *testing.B) {
	for _, c := range cells() {
		events := 16384
		switch {
		case testing.Short():
			events = 256
		case c.bundle == 1:
			events = 2048
		case c.dim > 100:
			events = 8192
		}
		c.run(b, events, func(b *testing.B, d *deployment) func(round uint64) (time.Duration, error) {
			g := newGateway(b, d, c.bundle)
			return func(round uint64) (time.Duration, error) { return g.fill(round, events) }
		})
	}
}

// run fills rounds in turns with raw messages of the same size and number.
func (c cell) run(b *testing.B, users int, filler func(*testing.B, *deployment) func(round uint64) (time.Duration,
	error)) {
	b.Run(c.String(), func(b *testing.B) {
		url := startBroker(b, c.syncs)
		r := newRaw(b, url, c.memory)
		d := deploy(b, url, c.setup, users, b.N+1)
		fill := filler(b, d)
		messages, size := users/c.bundle, d.messageBytes(c.bundle)
		var total time.Duration
		var ratios series
		for i := range b.N + 1 {
			alone, err := r.carry(messages, size)
			if err != nil {
				b.Fatal(err)
			}
			took, err := fill(uint64(i + 1))
			if err != nil {
				b.Fatal(err)
			}
			if i > 0 { // the first one warms up
				total += took
				ratios = append(ratios, alone.Seconds()/took.Seconds())
			}
		}
		rounds := float64(b.N)
		b.ReportMetric(float64(total.Nanoseconds())/rounds, "ns/op")
		b.ReportMetric(rounds*float64(messages*size)/1e6/total.Seconds(), "MB/s")
		b.ReportMetric(rounds*float64(users)/total.Seconds(), "events/s")
		b.ReportMetric(ratios.median(), "of-raw")
	})
}

// BenchmarkRound: a round of 16 sealed users, from the moment that a gateway's events are there to the moment that
// the next round is open, beside a read and a write of a record.
func BenchmarkRound(b *testing.B) {
	const cohort = 16
	for _, syncs := range []bool{true, false} {
		b.Run(fmt.Sprintf("synced=%t", syncs), func(b *testing.B) {
			d := deploy(b, startBroker(b, syncs), setup{dim: 10, sealed: true, bundle: 1}, cohort, b.N+2)
			g, conn := newGateway(b, d, 1), d.connect(b)
			timed := func(f func() error) time.Duration {
				begun := time.Now()
				if err := f(); err != nil {
					b.Fatal(err)
				}
				return time.Since(begun)
			}
			if err := d.opened.wait(d.ctx, 1); err != nil {
				b.Fatal(err)
			}
			var rounds, reads, writes series
			for r := uint64(1); r <= uint64(b.N)+1; r++ {
				round := timed(func() error {
					g.events <- cohort
					return d.opened.wait(d.ctx, r+1)
				})
				read := timed(func() error {
					_, err := conn.Get(d.ctx, taskName.Task())
					return err
				})
				write := timed(func() error { // a record of a round that does not come: it is written once and nobody reads it
					_, err := conn.PutOnce(d.ctx, taskName.Claim(stream.Round(uint64(b.N)+2+r)), []byte("x"))
					return err
				})
				if r > 1 { // the first one warms up
					rounds = append(rounds, float64(round.Nanoseconds()))
					reads, writes = append(reads, float64(round)/float64(read)), append(writes, float64(round)/float64(write))
				}
			}
			b.ReportMetric(rounds.median(), "ns/op")
			b.ReportMetric(reads.median(), "reads")
			b.ReportMetric(writes.median(), "writes")
		})
	}
}

// A series is one figure, measured again and again.
type series []float64

func (s series) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
