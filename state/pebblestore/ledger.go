package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/panlearn/panlearn/state"
)

const (
	ledgerPrefix = "ledger/"
	ledgerEnd    = "ledger0" // the first key after every key with ledgerPrefix

	pageEntries = 256 // ledger entries read in one go
)

func ledgerKey(sequence uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(ledgerPrefix), sequence)
}

// Ledger implements [state.Store]. Entries that are committed while it runs are not seen. The store may be used
// inside the loop.
func (s *Store) Ledger(ctx context.Context) iter.Seq2[state.Entry, error] {
	return func(yield func(state.Entry, error) bool) {
		head, err := s.head(ctx)
		for next := uint64(1); err == nil && next <= head; {
			var page []state.Entry
			if page, err = s.lockedPage(ctx, next); err != nil {
				break
			}
			for _, e := range page {
				if e.Sequence > head {
					return
				}
				if !yield(e, nil) {
					return
				}
			}
			if len(page) == 0 {
				err = fmt.Errorf("entry %d is missing, the checkpoint names %d entries", next, head)
				break
			}
			next = page[len(page)-1].Sequence + 1
		}
		if err != nil {
			yield(state.Entry{}, fmt.Errorf("ledger: %w", err))
		}
	}
}

func (s *Store) head(ctx context.Context) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	if !s.loaded {
		if err := s.load(); err != nil {
			return 0, err
		}
	}
	return s.current.Ledger.Head.Length, nil
}

func (s *Store) lockedPage(ctx context.Context, from uint64) ([]state.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if from <= s.archived.Head.Length {
		return s.archivePage(from)
	}
	return s.page(from)
}

// entries yields every entry in Pebble from the given sequence on, with s.mu held.
func (s *Store) entries(from uint64) iter.Seq2[state.Entry, error] {
	return func(yield func(state.Entry, error) bool) {
		for next := from; ; {
			page, err := s.page(next)
			if err != nil {
				yield(state.Entry{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if len(page) < pageEntries {
				return
			}
			next = page[len(page)-1].Sequence + 1
		}
	}
}

// page reads up to pageEntries entries from the given sequence on, with s.mu held.
func (s *Store) page(from uint64) ([]state.Entry, error) {
	var page []state.Entry
	err := s.failure.guard(func() error {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: ledgerKey(from), UpperBound: []byte(ledgerEnd)})
		if err != nil {
			return err
		}
		for ok := it.First(); ok && len(page) < pageEntries; ok = it.Next() {
			e, err := readEntry(it)
			if err != nil {
				return errors.Join(err, it.Close())
			}
			page = append(page, e)
		}
		return errors.Join(it.Error(), it.Close())
	})
	if err != nil {
		return nil, err // not page: the goroutine of a failed store may still hold it
	}
	return page, nil
}

func readEntry(it *pebble.Iterator) (state.Entry, error) {
	var e state.Entry
	value, err := it.ValueAndErr()
	if err != nil {
		return e, err
	}
	if err := e.UnmarshalBinary(value); err != nil {
		return e, fmt.Errorf("under key %x: %w", it.Key(), err)
	}
	if string(it.Key()) != string(ledgerKey(e.Sequence)) {
		return e, fmt.Errorf("entry %d is stored under key %x: the ledger was changed", e.Sequence, it.Key())
	}
	return e, nil
}
