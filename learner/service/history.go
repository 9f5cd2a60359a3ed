package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/panlearn/panlearn/learner"
	"github.com/panlearn/panlearn/learner/method"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/wire"
)

const (
	keptRecords = 4096 // of the newest rounds, in addition to those with a model
	mostPinned  = 100
)

// Retention selects the models that a learner keeps in addition to pinned ones. The zero value keeps none.
type Retention struct {
	Rounds uint64        // rounds between kept models; 0: Every applies
	Every  time.Duration // time between kept models
	Newest int           // number of models kept
}

// A History holds the records of a task's rounds, and changes the state of the task between rounds: it pins models, and
// releases an old one again. A Service writes the records of its rounds through it. It is safe for concurrent use, and
// the only writer of its store besides that Service.
type History struct {
	store   state.Store
	changed chan struct{} // has room for one

	mu      sync.Mutex // held through every commit
	loaded  bool
	records []Record // by round
	edited  bool     // the checkpoint differs from the Service's
}

// NewHistory returns the history in a store.
func NewHistory(store state.Store) *History {
	return &History{store: store, changed: make(chan struct{}, 1)}
}

// ReadRecords returns the records of the newest rounds of a store, oldest first; all of them if newest is 0.
func ReadRecords(ctx context.Context, store state.Store, newest int) ([]Record, error) {
	rows, err := store.Rows(ctx, newest)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	out := make([]Record, 0, len(rows))
	for _, k := range rows {
		r, err := readRecord(k)
		if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		out = append(out, r)
	}
	return out, nil
}

// ReadModel returns the model that a store keeps for a round.
func ReadModel(ctx context.Context, store state.Store, round uint64) ([]float64, error) {
	data, err := store.Model(ctx, round)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return method.Floats(data), nil
}

// A NotKeptError is returned when the model of a round is not kept.
type NotKeptError struct {
	Round   uint64
	Nearest []uint64 // the nearest rounds whose models are kept, at most one on each side
}

func (e *NotKeptError) Error() string {
	switch len(e.Nearest) {
	case 0:
		return fmt.Sprintf("no model of round %d is kept, nor of any other round before the newest", e.Round)
	case 1:
		return fmt.Sprintf("no model of round %d is kept: the nearest is that of round %d", e.Round, e.Nearest[0])
	}
	return fmt.Sprintf("no model of round %d is kept: the nearest are those of rounds %d and %d", e.Round, e.Nearest[0],
		e.Nearest[1])
}

// Kept returns the record of a round whose model is kept, or a *NotKeptError.
func Kept(records []Record, round uint64) (*Record, error) {
	out := &NotKeptError{Round: round}
	for i := range records {
		r := &records[i]
		switch {
		case !r.Snapshot:
		case r.Round == round:
			return r, nil
		case r.Round < round:
			out.Nearest = []uint64{r.Round}
		default:
			out.Nearest = append(out.Nearest, r.Round)
			return nil, out
		}
	}
	return nil, out
}

// load reads the records, with h.mu held.
func (h *History) load(ctx context.Context) error {
	if h.loaded {
		return nil
	}
	records, err := ReadRecords(ctx, h.store, 0)
	if err == nil {
		h.records, h.loaded = records, true
	}
	return err
}

// newest returns the record of the newest round; the zero value where there is none. With h.mu held.
func (h *History) newest() Record {
	if len(h.records) == 0 {
		return Record{}
	}
	return h.records[len(h.records)-1]
}

// follow returns the records after a round and the changes to the store: it adds the round, with its model if that is
// due, and drops or shortens older rounds. h.mu is held.
func (h *History) follow(r Record, model []float64, keep Retention) ([]Record, []state.Kept, error) {
	last := h.newest()
	r.Rollback, r.Rollbacks, r.Kept = last.Rollback, last.Rollbacks, last.Kept
	r.Version = r.Steps + r.Rollbacks
	if r.Snapshot = len(model) > 0 && keep.due(r, last.Kept); r.Snapshot {
		r.Kept = &Moment{r.Round, r.Time}
	}
	kept, err := r.keep(method.AppendFloats(nil, model...))
	if err != nil {
		return nil, nil, err
	}
	changes := []state.Kept{kept}
	records := append(slices.Clone(h.records), r)
	models := 0
	for i := len(records) - 1; i >= 0; i-- {
		old := &records[i]
		if !old.Snapshot || old.Pinned {
			continue
		}
		if models++; models > max(keep.Newest, 1) {
			old.Snapshot = false
			if kept, err = old.keep(nil); err != nil {
				return nil, nil, err
			}
			changes = append(changes, kept)
		}
	}
	lines := len(records)
	records = slices.DeleteFunc(records, func(old Record) bool {
		lines--
		if old.Snapshot || lines < keptRecords {
			return false
		}
		changes = append(changes, state.Kept{Round: old.Round})
		return true
	})
	return records, changes, nil
}

// due reports whether the model after a round is kept.
func (k Retention) due(r Record, last *Moment) bool {
	switch {
	case k.Newest < 1:
		return false
	case last == nil:
		return true
	case k.Rounds > 0:
		return r.Round >= last.Round+k.Rounds
	}
	return r.Time.Sub(last.Time) >= k.Every
}

// Pin keeps the model of a round until it is unpinned, regardless of Retention; with pin false, Retention applies to it
// again. Pinning the newest round stores its model.
func (h *History) Pin(ctx context.Context, round uint64, pin bool) (Record, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, err := h.at(ctx)
	if err != nil {
		return Record{}, err
	}
	pinned := 0
	for _, r := range h.records {
		if r.Pinned {
			pinned++
		}
	}
	newest := h.newest()
	var model []byte
	r, err := Kept(h.records, round)
	switch {
	case err == nil:
		if model, err = h.store.Model(ctx, round); err != nil {
			return Record{}, fmt.Errorf("history: %w", err)
		}
	case pin && round == at.Cursor.Round && round == newest.Round && !newest.RolledBack():
		alg, err := algorithmOf(at)
		if err != nil {
			return Record{}, err
		}
		r, model = &newest, method.AppendFloats(nil, alg.Model()...)
		r.Snapshot, r.Kept = true, &Moment{r.Round, r.Time}
	default:
		return Record{}, err
	}
	changed := *r
	switch {
	case changed.Pinned == pin && changed.Snapshot == r.Snapshot && r != &newest:
		return changed, nil
	case pin && pinned >= mostPinned:
		return Record{}, fmt.Errorf("round %d: %d models are pinned: unpin one of them first", round, pinned)
	}
	changed.Pinned = pin
	return changed, h.change(ctx, at, changed, model)
}

// RollBack releases the model of an earlier round again: the next round starts from it. It costs no privacy, because
// nobody is asked. The model that was current is kept, so that a rollback can be undone. The round announced before
// stays open: its users are counted, and their answers do not change the model.
func (h *History) RollBack(ctx context.Context, round uint64, now time.Time) (Record, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, err := h.at(ctx)
	if err != nil {
		return Record{}, err
	}
	if at.Ended() {
		return Record{},
			fmt.Errorf("round %d: the task has ended, and its model stays: learner snapshot --round has the earlier one", round)
	}
	newest := h.newest()
	stands := at.Cursor.Round
	if newest.Round == stands {
		stands = newest.current()
	}
	if round == stands {
		return Record{}, fmt.Errorf("round %d: its model is the one that stands", round)
	}
	if _, err := Kept(h.records, round); err != nil {
		return Record{}, err
	}
	model, err := ReadModel(ctx, h.store, round)
	if err != nil {
		return Record{}, err
	}
	alg, err := algorithmOf(at)
	if err != nil {
		return Record{}, err
	}
	before := method.AppendFloats(nil, alg.Model()...)
	if err := learner.RollBack(alg, model); err != nil {
		return Record{}, fmt.Errorf("round %d: %w", round, err)
	}
	next := at
	if next.Algorithm, err = alg.MarshalBinary(); err != nil {
		return Record{}, err
	}
	if newest.Round != at.Cursor.Round { // a folder without records of its rounds
		newest = Record{Round: at.Cursor.Round, Time: now, Steps: at.Ledger.Steps, Version: at.Ledger.Steps +
			newest.Rollbacks, UsersSoFar: at.Ledger.Users(),
			Rollback: newest.Rollback, Rollbacks: newest.Rollbacks, Kept: newest.Kept}
	}
	if newest.Snapshot {
		if before, err = h.store.Model(ctx, newest.Round); err != nil {
			return Record{}, fmt.Errorf("history: %w", err)
		}
	}
	after := *newest.rollBack(round, now.UTC())
	return after, h.change(ctx, next, after, before)
}

// redo records a rollback after the newest round again, and returns the changes to the store. h.mu is held.
func (h *History) redo(ctx context.Context, r Record, before []byte) ([]state.Kept, error) {
	last := &h.records[len(h.records)-1]
	if last.Snapshot {
		var err error
		if before, err = h.store.Model(ctx, last.Round); err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
	}
	*last = r
	kept, err := r.keep(before)
	return []state.Kept{kept}, err
}

// at reads the checkpoint and the records, with h.mu held.
func (h *History) at(ctx context.Context) (state.Checkpoint, error) {
	at, err := h.store.Load(ctx)
	if err == nil && at.Cursor.Round == 0 {
		err = errors.New("no round is committed yet")
	}
	if err != nil {
		return at, err
	}
	return at, h.load(ctx)
}

// change commits a checkpoint and a record between rounds. h.mu is held.
func (h *History) change(ctx context.Context, next state.Checkpoint, r Record, model []byte) error {
	kept, err := r.keep(model)
	if err != nil {
		return err
	}
	if err := h.store.Commit(ctx, next, nil, kept); err != nil {
		return err
	}
	i, found := slices.BinarySearchFunc(h.records, r.Round, func(r Record, round uint64) int {
		return cmp.Compare(r.Round, round)
	})
	if found {
		h.records[i] = r
	} else {
		h.records = slices.Insert(h.records, i, r)
	}
	h.edited = true
	select {
	case h.changed <- struct{}{}:
	default:
	}
	return nil
}

// algorithmOf returns the method of a committed state.
func algorithmOf(at state.Checkpoint) (learner.Algorithm, error) {
	signed, task := &wire.Signed{}, &wire.Task{}
	err := stream.Unmarshal(at.Task, signed)
	if err == nil {
		err = stream.Unmarshal(signed.Body, task)
	}
	if err != nil {
		return nil, fmt.Errorf("stored task: %w", err)
	}
	return (&core{task: task}).algorithm(at)
}
