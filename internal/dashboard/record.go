package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	recordVersion = 1
	// recordSize bounds a record that is read, in bytes: ten times what is written at most.
	recordSize = 4 << 20
	// recordEvery is the least time between two records, and so bounds what a killed learner forgets of its curves.
	recordEvery = 10 * time.Second
)

// A record holds the curves of a task, which are public. It is kept beside the task's state, and nothing but the page
// needs it. A record that is lost, torn or of another task counts as an empty one.
type record struct {
	Version  int          `json:"version"`
	Task     string       `json:"task"`
	Points   []roundPoint `json:"points"`
	Stride   int          `json:"stride"`
	Next     *roundPoint  `json:"next,omitempty"` // the point that is not complete
	N        int          `json:"n"`              // rounds in Next
	Since    marks        `json:"since"`          // the newest point
	Laps     []lap        `json:"laps"`
	Expected *Expected    `json:"expected,omitempty"`
}

// load reads the record of a task. It returns an error for a file that is no such record; the caller then begins without.
func load(path, task string) (record, error) {
	f, err := os.Open(path)
	if err != nil {
		return record{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, recordSize))
	if err != nil {
		return record{}, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return record{}, err
	}
	switch {
	case r.Version != recordVersion || r.Task != task:
		return record{}, fmt.Errorf("a record of version %d of task %q", r.Version, r.Task)
	case len(r.Points) >= kept || len(r.Laps) > paced || len(r.Points) > 0 && r.Stride < 1 ||
		(r.N > 0) != (r.Next != nil) || r.N < 0 || r.N > 0 && r.N >= r.Stride:
		return record{}, errors.New("a record that no page has written")
	}
	return r, r.inOrder()
}

// inOrder checks that rounds grow and that a curve can be drawn.
func (r *record) inOrder() error {
	last := uint64(0)
	for p := range r.all() {
		if p.Round <= last || p.Count == 0 || p.Took < 0 {
			return fmt.Errorf("a record with round %d after %d", p.Round, last)
		}
		last = p.Round
	}
	return nil
}

func (r *record) all() func(yield func(roundPoint) bool) {
	return func(yield func(roundPoint) bool) {
		for _, p := range r.Points {
			if !yield(p) {
				return
			}
		}
		if r.Next != nil {
			yield(*r.Next)
		}
	}
}

// restore puts a record into a board that has seen nothing yet.
func (b *Board) restore(r record) {
	b.rounds.points, b.rounds.stride, b.rounds.n, b.since, b.laps = r.Points, r.Stride, r.N, r.Since, r.Laps
	if r.Next != nil {
		b.rounds.next = *r.Next
	}
	if b.task.Expected == nil {
		b.task.Expected = r.Expected
	}
	if len(r.Points) > 0 || r.Next != nil {
		b.since.Restarts++
	}
}

// forget drops what a state folder that was put back has not seen.
func (b *Board) forget(round, users uint64) {
	for _, p := range b.rounds.all() {
		if p.Round > round || p.Users > users {
			b.rounds, b.laps, b.since = history[roundPoint]{merge: mergeRounds}, nil, marks{}
			return
		}
	}
}

// Save writes what the page remembers, if it is time or at the end. Without a file to write it does nothing.
func (b *Board) Save(last bool) error {
	b.saving.Lock()
	defer b.saving.Unlock()
	b.mu.Lock()
	now := b.config.Now()
	if b.config.Record == "" || !b.resumed || b.saved == b.progress.Round || !last && now.Sub(b.savedAt) < recordEvery {
		b.mu.Unlock()
		return nil
	}
	b.saved, b.savedAt = b.progress.Round, now
	r := record{Version: recordVersion, Task: b.task.Name, Points: append([]roundPoint(nil), b.rounds.points...),
		Stride: b.rounds.stride,
		N:      b.rounds.n, Since: b.since, Laps: append([]lap(nil), b.laps...), Expected: b.task.Expected}
	if r.N > 0 {
		next := b.rounds.next
		r.Next = &next
	}
	b.mu.Unlock()
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("keep the page's curves: %w", err)
	}
	// A machine that dies may leave an empty file, which is an empty record.
	fresh := b.config.Record + ".new"
	if err := os.WriteFile(fresh, data, 0o600); err != nil {
		return fmt.Errorf("keep the page's curves: %w", err)
	}
	if err := os.Rename(fresh, b.config.Record); err != nil {
		return fmt.Errorf("keep the page's curves: %w", err)
	}
	return nil
}
