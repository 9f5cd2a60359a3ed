package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/panlearn/panlearn/state"
)

const (
	rowPrefix   = "row/"
	rowEnd      = "row0" // the first key after every key with rowPrefix
	modelPrefix = "model/"
)

func keptKey(prefix string, round uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(prefix), round)
}

// keep adds to a batch the writes and deletes for kept.
func keep(b *pebble.Batch, kept []state.Kept) error {
	for _, k := range kept {
		row, model := keptKey(rowPrefix, k.Round), keptKey(modelPrefix, k.Round)
		if len(k.Row) == 0 {
			if err := errors.Join(b.Delete(row, nil), b.Delete(model, nil)); err != nil {
				return err
			}
			continue
		}
		of, value := k.Encode()
		if err := b.Set(row, of, nil); err != nil {
			return err
		}
		var err error
		if value == nil {
			err = b.Delete(model, nil)
		} else {
			err = b.Set(model, value, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fill commits the first state of a new folder, and what is kept of its rounds, one after the other.
func (s *Store) fill(checkpoint []byte, ledger state.Ledger, kept iter.Seq2[state.Kept, error]) error {
	if kept == nil {
		kept = func(func(state.Kept, error) bool) {}
	}
	for k, err := range kept {
		if err != nil {
			return err
		}
		b := s.db.NewBatch()
		if err := keep(b, []state.Kept{k}); err != nil {
			return err
		}
		if err := errors.Join(s.db.Apply(b, pebble.NoSync), b.Close()); err != nil {
			return err
		}
	}
	return s.write(checkpoint, nil, nil, ledger, nil)
}

// Rows implements [state.Store].
func (s *Store) Rows(ctx context.Context, newest int) ([]state.Kept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, fmt.Errorf("kept rounds: %w", err)
	}
	var out []state.Kept
	err := s.failure.guard(func() error {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte(rowPrefix), UpperBound: []byte(rowEnd)})
		if err != nil {
			return err
		}
		for ok := it.Last(); ok && (newest <= 0 || len(out) < newest); ok = it.Prev() {
			k, err := readRow(it)
			if err != nil {
				return errors.Join(err, it.Close())
			}
			out = append(out, k)
		}
		return errors.Join(it.Error(), it.Close())
	})
	if err != nil {
		return nil, err // not out: the goroutine of a failed store may still hold it
	}
	slices.Reverse(out)
	return out, nil
}

func readRow(it *pebble.Iterator) (state.Kept, error) {
	key := it.Key()
	if len(key) != len(rowPrefix)+8 {
		return state.Kept{}, fmt.Errorf("kept rounds: key %x: damaged", key)
	}
	round := binary.BigEndian.Uint64(key[len(rowPrefix):])
	value, err := it.ValueAndErr()
	if err != nil {
		return state.Kept{}, err
	}
	row, err := state.DecodeRow(round, value)
	return state.Kept{Round: round, Row: row}, err
}

// Model implements [state.Store].
func (s *Store) Model(ctx context.Context, round uint64) (model []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, fmt.Errorf("kept model: %w", err)
	}
	err = s.failure.guard(func() error {
		return s.get(string(keptKey(modelPrefix, round)), func(value []byte) (err error) {
			model, err = state.DecodeModel(round, value)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return model, nil
}
