package device_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/randomizer"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
	"github.com/panlearn/panlearn/stream/wire"
)

// A sink acknowledges every report, and calls full after all of them.
type sink struct {
	stream.Transport
	want     uint64
	sequence atomic.Uint64
	seen     atomic.Uint64
	full     func()
}

func (s *sink) Publish(_ context.Context, reports []stream.Outgoing) ([]stream.Ack, error) {
	acks := make([]stream.Ack, len(reports))
	n := uint64(0)
	for i, r := range reports {
		acks[i] = stream.Ack{Status: stream.Stored, Sequence: s.sequence.Add(1)}
		var m wire.Report
		if err := stream.Unmarshal(r.Data, &m); err != nil {
			return nil, err
		}
		n += uint64(len(m.Ids))
	}
	if s.seen.Add(n) >= s.want {
		s.full()
	}
	return acks, nil
}

const benchDeclaration = `
version: 1
name: churn
events: {format: libsvm}
features: {vector: {dimension: %d, min: 0, max: 1, max_nonzeros: 14}}
label: {positive: ["1"], negative: ["-1"]}
model: {loss: logistic, radius: 5, clip_norm: 1}
privacy: {epsilon: 1, delta: 1e-6, seal: %s}
schedule: {users: %d, plan: proved}
validation: {off: true}
`

// Rows a second of one gateway with a synced file store, from the row to the acknowledged sealed report. The broker
// costs nothing but decoding.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		dim    int
		suite  wire.Suite
		bundle int
	}{
		{123, wire.Suite_SUITE_X25519, 1}, {123, wire.Suite_SUITE_X25519, 64}, {123, wire.Suite_SUITE_NONE, 64},
		{123, wire.Suite_SUITE_MLKEM768_X25519, 1},
		{784, wire.Suite_SUITE_X25519, 1}, {123, wire.Suite_SUITE_NONE, 1},
	} {
		b.Run(fmt.Sprintf("dim=%d/%v/bundle=%d", c.dim, c.suite, c.bundle), func(b *testing.B) {
			w := newWorld(b, plan{rounds: 1, cohort: 10})
			users := uint64(max(b.N, 1000))
			sealed := "hpke"
			if c.suite == wire.Suite_SUITE_NONE {
				sealed = "none"
			}
			var sets []string
			if c.suite == wire.Suite_SUITE_MLKEM768_X25519 {
				sets = append(sets, "privacy.suite=3")
			}
			spec, err := task.Parse(fmt.Appendf(nil, benchDeclaration, c.dim, sealed, users), sets)
			must(b, err)
			w.task.Declaration, err = spec.Canonical()
			must(b, err)
			w.task.Suite = c.suite
			p, f := w.task.Plan, w.task.Plan.Phases[0]
			w.params = randomizer.Params{Dim: c.dim + 1, ClipNorm: 1, Levels: 19, Trials: 40, Coin: randomizer.Fair}
			f.Mechanism = manifest.Mechanism(w.params, 64)
			f.Users, f.Cohort, f.Minimum, p.Delta, p.EpsilonBudget = users, users, users, 1e-6, 1
			w.hash = taskHash(b, w.task)

			ctx := b.Context()
			w.put(ctx, w.name.Task(), w.learner, w.task)
			r := w.round(1, 1)
			r.Point = make([]float64, c.dim+1)
			w.put(ctx, w.name.Round(1), w.learner, r)
			hash, err := manifest.RoundHash(r)
			must(b, err)
			w.open(ctx, 1, 1, hash)
			store, err := filestore.Open(filepath.Join(b.TempDir(), "p"))
			must(b, err)
			defer func() { must(b, store.Close()) }()
			cfg := w.config(store)
			cfg.Bundle = c.bundle
			cfg.Transport = &sink{Transport: cfg.Transport, want: uint64(b.N), full: func() {
				w.close(ctx, participation.Closed{Round: 1, Attempt: nth(1), Manifest: hash, Cutoff: 1 << 40})
			}}
			b.SetBytes(int64(w.params.ReportBytes()))
			b.ReportAllocs()
			b.ResetTimer()
			sum, err := w.client(cfg).Run(ctx, sparse(b.N, c.dim))
			b.StopTimer()
			must(b, err)
			if sum.Counted != uint64(b.N) {
				b.Fatalf("%+v", sum)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func sparse(n, dim int) iter.Seq2[task.Row, error] {
	return func(yield func(task.Row, error) bool) {
		row := task.Row{Label: "1", Value: make([]float64, 14), Index: make([]int32, 14)}
		for i := range row.Value {
			row.Value[i], row.Index[i] = 1, int32(i*dim/14)
		}
		for i := range n {
			row.Number, row.Line = int64(i), int64(i)+1
			if !yield(row, nil) {
				return
			}
		}
	}
}
