package client_test

import (
	"context"

	"github.com/panlearn/panlearn/learner/convex"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client/participation"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

type row = task.Row

// example is a valid event with a label.
func example(label float64) convex.Example {
	return convex.Example{Index: []int32{1}, Value: []float64{0.5}, Label: label}
}

// openMessage is an attempt that nobody collects.
func (w *world) openMessage(r stream.Round, a stream.Attempt, manifest stream.Hash) *wire.Open {
	key, err := seal.NewRoundKey(w.task.Suite)
	must(w.t, err)
	return &wire.Open{
		Version: stream.Version, TaskHash: w.hash[:], Round: uint64(r), Attempt: uint64(a), ManifestHash: manifest[:], Suite: w.task.Suite,
		PublicKey: key.Public(), Instance: make([]byte, stream.InstanceSize), StartedUnixMs: 1,
	}
}

func (w *world) open(ctx context.Context, r stream.Round, a stream.Attempt, manifest stream.Hash) {
	w.put(ctx, w.name.Open(r, a), w.stage, w.openMessage(r, a, manifest))
}

func (w *world) closeMessage(c participation.Closed) *wire.Close {
	return &wire.Close{
		Version: stream.Version, TaskHash: w.hash[:], Round: uint64(c.Round), Attempt: uint64(c.Attempt.Number), ManifestHash: c.Manifest[:],
		BatchHash: make([]byte, stream.HashSize), Cutoff: c.Cutoff, Void: c.Void,
	}
}

func (w *world) close(ctx context.Context, c participation.Closed) {
	w.put(ctx, w.name.Close(c.Round, c.Attempt.Number), w.stage, w.closeMessage(c))
}

// reports counts what was published to an attempt.
func (w *world) reports(r stream.Round, a stream.Attempt) int {
	n := 0
	for _, m := range w.broker.Dump() {
		if m.Subject == w.name.Report(r, a) {
			n++
		}
	}
	return n
}

// nth is the attempt of a number whose Open has no hash to speak of.
func nth(n stream.Attempt) participation.Attempt { return participation.Attempt{Number: n} }
