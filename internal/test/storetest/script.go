package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/panlearn/panlearn/state"
)

// A Script is a task of Rounds rounds whose checkpoints are a function of the round alone. Every fifth round is void.
// The content is pseudo-random, so that a half-written or mixed checkpoint differs from every whole one.
type Script struct {
	Rounds uint64 // rounds until End
	Bytes  int    // size of the optimizer's state; 0 means 256
	// Other, unless it is 0, is the first round of another history of the same task: from there on it has other
	// batches.
	Other uint64
}

// budget is the privacy budget of every script; no script reaches it.
var budget = state.Cost{Epsilon: 1, Delta: 1e-6}

func (s Script) bytes(what string, round uint64, n int) []byte {
	var seed [32]byte
	copy(seed[:], what)
	binary.BigEndian.PutUint64(seed[24:], round)
	b := make([]byte, n)
	rand.NewChaCha8(seed).Read(b)
	return b
}

func (s Script) task() state.Hash { return sha256.Sum256([]byte("script")) }

func (s Script) batch(round uint64) state.Hash {
	what := "batch"
	if s.Other > 0 && round >= s.Other {
		what = "other batch"
	}
	return sha256.Sum256(s.bytes(what, round, 32))
}

// Next returns the checkpoint after prev with its ledger entries. A zero prev starts the task. Rounds 6 to 9 of
// each ten are answered by the same users.
func (s Script) Next(prev state.Checkpoint) (state.Checkpoint, []state.Entry, error) {
	var entries []state.Entry
	l := prev.Ledger
	var round uint64
	add := func(e state.Entry, err error) error {
		entries = append(entries, e)
		return err
	}
	if !prev.IsZero() {
		if round = prev.Cursor.Round + 1; round > s.Rounds {
			return state.Checkpoint{}, nil, fmt.Errorf("script of %d rounds is over", s.Rounds)
		}
		var err error
		if round%5 == 0 {
			err = add(l.Void(round, 1, s.batch(round)))
		} else {
			err = add(l.Spend(state.Entry{Round: round, Attempt: 1, Users: 100 + round, NoiseTrials: 1000,
				Epsilon: 0.5 + float64(round%7)/100, Delta: 1e-6, TaskHash: s.task(), BatchHash: s.batch(round)}))
		}
		if err != nil {
			return state.Checkpoint{}, nil, err
		}
	}
	n := s.Bytes
	if n == 0 {
		n = 256
	}
	next := state.Checkpoint{
		Cursor:    state.Cursor{TaskHash: s.task(), Round: round},
		Algorithm: s.bytes("algorithm", round, n),
		Task:      []byte("signed task"),
	}
	if round > 0 {
		next.Cursor.BatchHash, next.Cursor.BatchSequence = s.batch(round), 10*round
		next.LastBatch = s.bytes("last batch", round, 20)
	}
	if round < s.Rounds {
		next.NextRound = s.bytes("next round", round, n/2+1)
		if err := add(l.Reserve(state.Entry{Round: round + 1, Users: 90, NoiseTrials: 900,
			Epsilon: 0.6, Delta: 1e-6, TaskHash: s.task(), Phase: phase(round + 1)}, budget)); err != nil {
			return state.Checkpoint{}, nil, err
		}
	} else {
		next.End = []byte("signed end")
	}
	next.Ledger = l
	return next, entries, nil
}

// keptRounds is the number of rounds that a script keeps.
const keptRounds = 3

// Kept returns what the commit of a round keeps: the round, every second one with a model, and no more of the one that
// is keptRounds older.
func (s Script) Kept(round uint64) (out []state.Kept) {
	if round == 0 {
		return nil
	}
	out = append(out, s.kept(round))
	if round > keptRounds {
		out = append(out, state.Kept{Round: round - keptRounds})
	}
	return out
}

func (s Script) kept(round uint64) state.Kept {
	k := state.Kept{Round: round, Row: s.bytes("row", round, 30)}
	if round%2 == 0 {
		k.Model = s.bytes("model", round, 64)
	}
	return k
}

// checkKept checks that exactly the script's records are kept after a round.
func (s Script) checkKept(ctx context.Context, store state.Store, round uint64) error {
	rows, err := store.Rows(ctx, 0)
	if err != nil {
		return err
	}
	if want := min(round, keptRounds); uint64(len(rows)) != want {
		return fmt.Errorf("%d rounds are kept after round %d, want %d", len(rows), round, want)
	}
	for i, got := range rows {
		want := s.kept(round - uint64(len(rows)) + 1 + uint64(i))
		if got.Model, err = store.Model(ctx, got.Round); err != nil {
			return err
		}
		if got.Round != want.Round || !bytes.Equal(got.Row, want.Row) || !bytes.Equal(got.Model, want.Model) {
			return fmt.Errorf("what is kept of round %d is not what was committed", want.Round)
		}
	}
	return nil
}

func phase(round uint64) uint64 {
	if round%10 < 6 {
		return 0
	}
	return round/10 + 1
}

// At returns the checkpoint after the commit of the given round, and the entries of that commit.
func (s Script) At(round uint64) (state.Checkpoint, []state.Entry, error) {
	var c state.Checkpoint
	for {
		var entries []state.Entry
		var err error
		if c, entries, err = s.Next(c); err != nil || c.Cursor.Round == round {
			return c, entries, err
		}
	}
}

// Read returns what the store holds, its whole ledger checked: the zero checkpoint if nothing was committed.
func Read(ctx context.Context, store state.Store) (state.Checkpoint, error) {
	c, err := store.Load(ctx)
	if err != nil && !errors.Is(err, state.ErrEmpty) {
		return c, err
	}
	return c, c.VerifyLedger(state.Ledger{}, store.Ledger(ctx))
}

// Advance loads the store and commits the script's next checkpoint.
func (s Script) Advance(ctx context.Context, store state.Store) error {
	c, err := Read(ctx, store)
	if err != nil {
		return err
	}
	next, entries, err := s.Next(c)
	if err != nil {
		return err
	}
	return store.Commit(ctx, next, entries, s.Kept(next.Cursor.Round)...)
}

// Check reads the store and returns the number of commits in it (0 if empty, round+1 else). It is an error if
// what is there is not exactly what the script commits.
func (s Script) Check(ctx context.Context, store state.Store) (commits uint64, err error) {
	c, err := Read(ctx, store)
	if err != nil || c.IsZero() {
		return 0, err
	}
	want, _, err := s.At(c.Cursor.Round)
	if err != nil {
		return 0, err
	}
	if !c.Equal(want) {
		return 0, fmt.Errorf("checkpoint of round %d is not the one that was committed", c.Cursor.Round)
	}
	return c.Cursor.Round + 1, s.checkKept(ctx, store, c.Cursor.Round)
}
