package stage

import (
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/grant"
)

// TestStintsAreApart: a nonce of one stint counts in no other, and one of users who answer once counts nowhere else.
func TestStintsAreApart(t *testing.T) {
	w := newWorld(t, plan{rounds: 1, cohort: 2, grants: true})
	f := w.task.Plan.Phases[0]
	w.task.Plan.Phases = nil
	for _, rounds := range []uint32{1, 2, 3} {
		of := proto.CloneOf(f)
		of.Rounds, of.RoundsPerUser = uint64(rounds), rounds
		w.task.Plan.Phases = append(w.task.Plan.Phases, of)
	}
	all := &tokens{plan: w.task.Plan, spent: map[int]*sortedRuns{}}
	for step := range stream.Step(6) { // steps 1; 2, 3; 4 to 6
		all.add(counted{round: stream.Round(step + 1), step: step + 1, hashes: []grant.Hash{{byte(step + 1)}}})
	}
	for step := stream.Step(1); step <= 6; step++ {
		for h := stream.Step(1); h <= 6; h++ {
			stint := func(s stream.Step) int { return []int{0, 1, 2, 2, 3, 3, 3}[s] }
			want := stint(h) != stint(step) || stint(h) == 1
			if got := all.isSpent(grant.Hash{byte(h)}, step); got != want {
				t.Errorf("a nonce of step %d is spent at step %d: %t", h, step, got)
			}
		}
	}
}

// TestSortedRuns against a map.
func TestSortedRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var runs sortedRuns
	want := map[grant.Hash]bool{}
	for range 200 {
		run := make([]grant.Hash, random.IntN(40))
		for i := range run {
			run[i] = grant.Hash{byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32())}
			want[run[i]] = true
		}
		slices.SortFunc(run, compareHashes)
		runs.add(run)
	}
	for h := range want {
		if !runs.has(h) {
			t.Fatalf("%x is not found", h)
		}
	}
	for range 1000 {
		h := grant.Hash{byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32())}
		if runs.has(h) != want[h] {
			t.Fatalf("%x is found: %t", h, !want[h])
		}
	}
	if len(runs.runs) > 12 {
		t.Errorf("%d runs", len(runs.runs))
	}
}
