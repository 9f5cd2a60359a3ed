package storetest

import (
	"context"
	"testing"

	"pgregory.net/rapid"
)

// RunHistory plays any mixture of commits, repeated commits, skipped rounds and restarts; after each the store
// holds exactly the commits that were accepted. newDisk returns an empty disk.
func RunHistory(t *testing.T, newDisk func(t *testing.T) Disk) {
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		script := Script{Rounds: rapid.Uint64Range(0, 6).Draw(rt, "rounds"), Bytes: rapid.IntRange(1, 3000).Draw(rt, "bytes")}
		d := newDisk(t)
		s := open(rt, d)
		defer func() { s.Close() }()
		var commits uint64
		offer := func(round uint64) error {
			c, entries, err := script.At(round)
			if err != nil {
				rt.Fatal(err)
			}
			return s.Commit(ctx, c, entries, script.Kept(round)...)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				if commits > script.Rounds {
					t.Skip("the task has ended")
				}
				if err := offer(commits); err != nil {
					t.Fatalf("commit of round %d: %v", commits, err)
				}
				commits++
			},
			"offer another round": func(t *rapid.T) {
				round := rapid.Uint64Range(0, script.Rounds).Draw(t, "round")
				if round == commits {
					t.Skip("that is the next one")
				}
				if err := offer(round); err == nil {
					t.Fatalf("round %d was accepted after %d commits", round, commits)
				}
			},
			"restart": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "now") > 0 {
					t.Skip("restarts are slow")
				}
				if err := s.Close(); err != nil {
					t.Fatalf("close: %v", err)
				}
				s = open(t, d)
			},
			"": func(t *rapid.T) {
				if n, err := script.Check(ctx, s); err != nil || n != commits {
					t.Fatalf("store has %d commits (%v), want %d", n, err, commits)
				}
			},
		})
	})
}
