package storetest

import (
	"context"
	"slices"
	"testing"

	"github.com/panlearn/panlearn/state"
)

// testKept changes what is kept without a round: rows are replaced, the algorithm may change before the end and not
// after it, and what no commit may do changes nothing.
func testKept(t *testing.T, disk func() Disk) {
	ctx := context.Background()
	script, d := Script{Rounds: 5}, disk()
	s := open(t, d)
	for range 5 {
		if err := script.Advance(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	at, err := s.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	moved := at.Clone()
	moved.Algorithm = []byte("an earlier model")
	pinned := state.Kept{Round: 4, Row: []byte("pinned"), Model: []byte("model")}
	for what, refused := range map[string]func() error{
		"nothing is kept":       func() error { return s.Commit(ctx, moved, nil) },
		"a round to come":       func() error { return s.Commit(ctx, moved, nil, state.Kept{Round: 5, Row: []byte("x")}) },
		"round 0":               func() error { return s.Commit(ctx, moved, nil, state.Kept{Row: []byte("x")}) },
		"a model without a row": func() error { return s.Commit(ctx, moved, nil, state.Kept{Round: 4, Model: []byte("x")}) },
		"another announced round": func() error {
			other := moved.Clone()
			other.NextRound = []byte("another")
			return s.Commit(ctx, other, nil, pinned)
		},
	} {
		if err := refused(); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	if n, err := script.Check(ctx, s); err != nil || n != 5 {
		t.Fatalf("after refusals: %d commits, %v", n, err)
	}
	if err := s.Commit(ctx, moved, nil, pinned); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, d)
	got, err := s.Load(ctx)
	model, bad := s.Model(ctx, 4)
	if err != nil || bad != nil || !got.Equal(moved) || string(model) != "model" {
		t.Fatalf("read back: %v, %v, model %q", err, bad, model)
	}
	rows, err := s.Rows(ctx, 2)
	if err != nil || !slices.EqualFunc(rows, []uint64{3, 4}, func(k state.Kept, r uint64) bool { return k.Round == r }) ||
		string(rows[1].Row) != "pinned" {
		t.Fatalf("the newest two rows: %v, %v", rows, err)
	}
	next, entries, err := script.Next(got)
	if err == nil {
		err = s.Commit(ctx, next, entries)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, next, nil, state.Kept{Round: 4}); err != nil {
		t.Errorf("an ended task's row is not dropped: %v", err)
	}
	if model, err := s.Model(ctx, 4); model != nil || err != nil {
		t.Errorf("a dropped row has a model: %q, %v", model, err)
	}
	next.Algorithm = []byte("after the end")
	if err := s.Commit(ctx, next, nil, pinned); err == nil {
		t.Error("the model changes after the end")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
