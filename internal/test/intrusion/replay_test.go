package intrusion

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/internal/test/memory"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/seal"
	"github.com/panlearn/panlearn/stream/wire"
)

// replay lets another learner read the released batches, and nothing else: whatever it commits may lie on a
// learner's disk.
func (w *world) replay(records stream.Records) {
	ctx := context.Background()
	inner, err := memory.New(memory.Config{})
	must(err)
	broker := dated{inner, map[string]time.Time{}}
	copyOf := func(subject string, m proto.Message, signer *seal.Identity) bool {
		got, err := records.Get(ctx, subject)
		if errors.Is(err, stream.ErrNotFound) {
			return false
		}
		must(err)
		_, err = seal.Verify(got.Data, signer.Public(), m)
		must(err)
		if signer == w.stage {
			_, err = broker.PutOnce(ctx, subject, got.Data)
			must(err)
			broker.times[subject] = got.Time
		}
		return true
	}
	var body wire.Task
	copyOf(name.Stage(), &wire.StageIdentity{}, w.stage)
	copyOf(name.Task(), &body, w.learner)
	for r := uint64(1); ; r++ {
		round, batch := &wire.Round{}, &wire.Batch{}
		if !copyOf(name.Round(stream.Round(r)), round, w.learner) {
			break
		}
		copyOf(name.Batch(stream.Round(r)), batch, w.stage)
		w.rounds[r], w.batches[r] = round, batch
	}
	s, err := service.New(service.Config{Task: name, Records: broker, Store: &noting{storetest.NewMemory(), w.allowed},
		Identity: w.learner,
		StageKey: w.stage.Public(), Prepare: func() (*wire.Task, error) { return &body, nil }, Snapshots: keeps,
		Poll: 10 * time.Millisecond})
	must(err)
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	must(s.Run(limited))
}

// keeps has models kept, and let go again, in both learners.
var keeps = service.Retention{Rounds: 1, Newest: 1}

// dated returns records with the times at which another broker stored them.
type dated struct {
	*memory.Broker
	times map[string]time.Time
}

// Get implements stream.Records.
func (d dated) Get(ctx context.Context, subject string) (stream.Message, error) {
	m, err := d.Broker.Get(ctx, subject)
	if at, known := d.times[subject]; known {
		m.Time = at
	}
	return m, err
}

// noting remembers every value that is committed.
type noting struct {
	state.Store
	values map[string]bool
}

// Commit implements state.Store.
func (n *noting) Commit(ctx context.Context, next state.Checkpoint, entries []state.Entry, kept ...state.Kept) error {
	value, err := next.MarshalBinary()
	must(err)
	n.values[string(value)] = true
	for _, e := range entries {
		value, err := e.MarshalBinary()
		must(err)
		n.values[string(value)] = true
	}
	for _, k := range kept {
		row, model := k.Encode()
		n.values[string(row)], n.values[string(model)] = true, true // nothing: a deletion
	}
	return n.Store.Commit(ctx, next, entries, kept...)
}
