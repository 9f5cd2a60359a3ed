package pebblestore

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/storetest"
	"github.com/panlearn/panlearn/state"
)

// TestManyRounds commits 10^6 rounds (PANLEARN_ROUNDS: another number) to the operating system's files: the process
// holds no more after the last than after the first thousands, and all entries verify at the end. What early and late
// commits take, and a start, is printed.
func TestManyRounds(t *testing.T) {
	rounds := uint64(1_000_000)
	if !longtest.Run(t, "10^6 rounds, a minute in a file system in memory, a quarter of an hour on disk") {
		return // TestWorkDoesNotGrow counts instead
	}
	if text := os.Getenv("PANLEARN_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.ParseUint(text, 10, 32); err != nil || rounds < 20_000 {
			t.Fatalf("PANLEARN_ROUNDS=%s: want a number from 20000", text)
		}
	}
	dir := t.TempDir()
	script := storetest.Script{Rounds: 1 << 40, Bytes: 1000}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const window = 1000
	var at state.Checkpoint
	var first, last []time.Duration
	var early, peak uint64
	for n := range rounds {
		next, entries, err := script.Next(at)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if err := s.Commit(t.Context(), next, entries, script.Kept(next.Cursor.Round)...); err != nil {
			t.Fatal(err)
		}
		switch took := time.Since(begun); {
		case n >= window && n < 2*window: // the first thousand fill caches
			first = append(first, took)
		case n >= rounds-window:
			last = append(last, took)
		}
		if at = next; n%5000 == 4999 {
			held := resident(t)
			if n < 10_000 {
				early = max(early, held)
			}
			peak = max(peak, held)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if s, err = Open(dir, Options{}); err == nil {
		_, err = s.Load(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	opened := time.Since(begun)
	begun = time.Now()
	if err := at.VerifyLedger(state.Ledger{}, s.Ledger(t.Context())); err != nil {
		t.Fatal(err)
	}
	verified := time.Since(begun)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	a, b := sum(first), sum(last)
	fmt.Printf(
		"MEASURED pebblestore, %d rounds: a commit of the second thousand %v (median %v), of the last %v (median %v); resident %.1f MB early, %.1f MB at most; opened in %v; %d entries verified in %v\n",
		rounds, a/window, median(first), b/window, median(last), float64(early)/1e6, float64(peak)/1e6, opened,
		at.Ledger.Head.Length, verified)
	if peak > early+early/2 {
		t.Errorf("the process holds %d bytes, and %d early", peak, early)
	}
}

// resident returns the resident memory of the process, by the system's count, after a collection.
func resident(t *testing.T) uint64 {
	t.Helper()
	runtime.GC()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.Sys
	}
	var size, pages uint64
	if _, err := fmt.Sscan(string(data), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * uint64(os.Getpagesize())
}

func sum(d []time.Duration) (s time.Duration) {
	for _, x := range d {
		s += x
	}
	return s
}

func median(d []time.Duration) time.Duration { return slices.Sorted(slices.Values(d))[len(d)/2] }
