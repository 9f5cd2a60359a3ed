package storetest

import (
	"github.com/panlearn/panlearn/state"

	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
)

// A Fault is a crash that [Memory] plays at a commit.
type Fault uint8

const (
	// NoFault lets the commit pass.
	NoFault Fault = iota
	// FailBefore loses the commit: it returns ErrFailed and nothing is kept.
	FailBefore
	// FailAfter keeps the commit and returns ErrFailed all the same, as a crash after the sync does.
	FailAfter
)

// Memory is a [state.Store] in the process, for tests. It keeps encoded bytes and applies the same
// rules as the durable store; its bytes outlive Close and a played crash, see [Memory.Reopen].
type Memory struct {
	// Fault, if set, is asked at every commit that the rule accepts. It must not call the store. Set it before use.
	Fault func(next state.Checkpoint) Fault

	disk   *memoryDisk
	mu     sync.Mutex // guards closed and err, and is taken before disk.mu
	closed bool
	err    error // why failed is closed
	failed chan struct{}
}

type memoryDisk struct {
	mu         sync.Mutex
	owned      bool
	checkpoint []byte // nil before the first commit
	ledger     [][]byte
	rows       map[uint64][]byte
	models     map[uint64][]byte
}

var _ state.Store = (*Memory)(nil)

// NewMemory returns an open, empty store.
func NewMemory() *Memory {
	return &Memory{disk: &memoryDisk{owned: true, rows: map[uint64][]byte{}, models: map[uint64][]byte{}},
		failed: make(chan struct{})}
}

// Reopen returns a new handle to the same bytes, without a Fault, as a restarted process gets one. It returns
// ErrLocked while m is open and has not failed.
func (m *Memory) Reopen() (*Memory, error) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	if m.disk.owned {
		return nil, fmt.Errorf("reopen memory: %w", state.ErrLocked)
	}
	m.disk.owned = true
	return &Memory{disk: m.disk, failed: make(chan struct{})}, nil
}

// Load implements [state.Store].
func (m *Memory) Load(ctx context.Context) (state.Checkpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return state.Checkpoint{}, fmt.Errorf("load: %w", err)
	}
	return m.load()
}

func (m *Memory) load() (state.Checkpoint, error) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	if m.disk.checkpoint == nil {
		return state.Checkpoint{}, fmt.Errorf("load: %w", state.ErrEmpty)
	}
	var c state.Checkpoint
	if err := c.UnmarshalBinary(m.disk.checkpoint); err != nil {
		return state.Checkpoint{}, fmt.Errorf("load: %w", err)
	}
	if err := c.VerifyLedger(state.Ledger{}, decoded(m.disk.ledger)); err != nil {
		return state.Checkpoint{}, fmt.Errorf("load: %w", err)
	}
	return c, nil
}

// Commit implements [state.Store].
func (m *Memory) Commit(ctx context.Context, next state.Checkpoint, entries []state.Entry, kept ...state.Kept) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	var prev state.Checkpoint
	if m.disk.checkpoint != nil {
		if err := prev.UnmarshalBinary(m.disk.checkpoint); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	if err := state.Next(prev, next, entries, kept...); err != nil {
		return err
	}
	checkpoint, err := next.MarshalBinary()
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	lines := make([][]byte, len(entries))
	for i, e := range entries {
		if lines[i], err = e.MarshalBinary(); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
	fault := NoFault
	if m.Fault != nil {
		fault = m.Fault(next)
	}
	if fault != FailBefore {
		m.disk.checkpoint, m.disk.ledger = checkpoint, append(m.disk.ledger, lines...)
		m.disk.keep(kept)
	}
	if fault != NoFault {
		m.err = fmt.Errorf("commit of round %d: played crash: %w", next.Cursor.Round, state.ErrFailed)
		m.disk.owned = false
		close(m.failed)
	}
	return m.err
}

// keep replaces what is kept of rounds.
func (d *memoryDisk) keep(kept []state.Kept) {
	for _, k := range kept {
		delete(d.rows, k.Round)
		delete(d.models, k.Round)
		if len(k.Row) == 0 {
			continue
		}
		row, model := k.Encode()
		if d.rows[k.Round] = row; model != nil {
			d.models[k.Round] = model
		}
	}
}

// Rows implements [state.Store].
func (m *Memory) Rows(ctx context.Context, newest int) ([]state.Kept, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return nil, fmt.Errorf("kept rounds: %w", err)
	}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	rounds := slices.Sorted(maps.Keys(m.disk.rows))
	if newest > 0 && len(rounds) > newest {
		rounds = rounds[len(rounds)-newest:]
	}
	var out []state.Kept
	for _, r := range rounds {
		row, err := state.DecodeRow(r, m.disk.rows[r])
		if err != nil {
			return nil, err
		}
		out = append(out, state.Kept{Round: r, Row: row})
	}
	return out, nil
}

// Model implements [state.Store].
func (m *Memory) Model(ctx context.Context, round uint64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return nil, fmt.Errorf("kept model: %w", err)
	}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	value, there := m.disk.models[round]
	if !there {
		return nil, nil
	}
	return state.DecodeModel(round, value)
}

// Ledger implements [state.Store].
func (m *Memory) Ledger(ctx context.Context) iter.Seq2[state.Entry, error] {
	return func(yield func(state.Entry, error) bool) {
		m.mu.Lock()
		err := m.usable(ctx)
		m.disk.mu.Lock()
		lines := m.disk.ledger[:len(m.disk.ledger):len(m.disk.ledger)]
		m.disk.mu.Unlock()
		m.mu.Unlock()
		if err != nil {
			yield(state.Entry{}, fmt.Errorf("ledger: %w", err))
			return
		}
		decoded(lines)(yield)
	}
}

func decoded(lines [][]byte) iter.Seq2[state.Entry, error] {
	return func(yield func(state.Entry, error) bool) {
		for _, line := range lines {
			var e state.Entry
			err := e.UnmarshalBinary(line)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Failed implements [state.Store].
func (m *Memory) Failed() <-chan struct{} { return m.failed }

// Close implements [state.Store]. The bytes stay for Reopen.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if m.closed {
		return fmt.Errorf("close: %w", state.ErrClosed)
	}
	m.closed = true
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	m.disk.owned = false
	return nil
}

// usable returns the error of the context or of a closed or broken store. It is called with m.mu held.
func (m *Memory) usable(ctx context.Context) error {
	switch {
	case m.err != nil:
		return m.err
	case m.closed:
		return state.ErrClosed
	}
	return ctx.Err()
}
