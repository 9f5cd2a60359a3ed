package state

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// history returns a store in which rounds 0 to 2 were committed and round 3 is announced.
func history(t *testing.T) (Checkpoint, *book) {
	t.Helper()
	must := must(t)
	l := new(book)
	for round := uint64(1); round <= 3; round++ {
		must(l.Reserve(reservation(round, 1), roomy))
		if round < 3 {
			must(l.Spend(batch(round, 0.5)))
		}
	}
	c := sampleCheckpoint()
	c.Cursor.Round, c.Ledger = 2, l.Ledger
	return c, l
}

// step returns the commit that follows history.
func step(t *testing.T, void, last bool) (prev, next Checkpoint, entries []Entry) {
	t.Helper()
	must := must(t)
	prev, l := history(t)
	next = prev.Clone()
	next.Cursor.Round, next.Cursor.BatchSequence = 3, 18
	next.Algorithm = []byte("after round 3")
	if void {
		entries = append(entries, must(l.Void(3, 2, testBatch)))
	} else {
		entries = append(entries, must(l.Spend(batch(3, 0.5))))
	}
	if last {
		next.NextRound, next.End = nil, []byte("end")
	} else {
		next.NextRound = []byte("round 4")
		entries = append(entries, must(l.Reserve(reservation(4, 1), roomy)))
	}
	next.Ledger = l.Ledger
	return prev, next, entries
}

// ending returns the commit that ends the task between rounds, giving up the announced round.
func ending(t *testing.T) (prev, next Checkpoint, entries []Entry) {
	t.Helper()
	must := must(t)
	prev, l := history(t)
	next = prev.Clone()
	next.NextRound, next.End = nil, []byte("end")
	entries = []Entry{must(l.Void(3, 0, Hash{}))}
	next.Ledger = l.Ledger
	return prev, next, entries
}

func TestNextAccepts(t *testing.T) {
	for _, void := range []bool{false, true} {
		for _, last := range []bool{false, true} {
			prev, next, entries := step(t, void, last)
			if err := Next(prev, next, entries); err != nil {
				t.Errorf("step with void %t, last %t: %v", void, last, err)
			}
			if err := next.VerifyLedger(Ledger{}, Entries(entries)); err == nil {
				t.Error("VerifyLedger accepts a ledger without its beginning")
			}
		}
	}
	prev, next, entries := ending(t)
	if err := Next(prev, next, entries); err != nil {
		t.Errorf("end between rounds: %v", err)
	}
	next.Algorithm = []byte("other")
	if err := Next(prev, next, entries); err == nil {
		t.Error("an end that changes the model was accepted")
	}
}

func TestNextStarts(t *testing.T) {
	l := new(book)
	first := must(t)(l.Reserve(reservation(1, 1), roomy))
	start := Checkpoint{Cursor: Cursor{TaskHash: testTask}, Ledger: l.Ledger, Algorithm: []byte("a"), Task: []byte("task"),
		NextRound: []byte("round 1")}
	if err := Next(Checkpoint{}, start, []Entry{first}); err != nil {
		t.Errorf("start: %v", err)
	}
	if err := start.VerifyLedger(Ledger{}, Entries(l.entries)); err != nil {
		t.Errorf("start: %v", err)
	}
	if err := Next(Checkpoint{}, start, nil); err == nil {
		t.Error("a start without its reservation was accepted")
	}
	_, later, entries := step(t, false, false)
	if err := Next(Checkpoint{}, later, entries); err == nil {
		t.Error("an empty store accepted round 3")
	}
	refused := Checkpoint{Cursor: Cursor{TaskHash: testTask}, Algorithm: []byte("a"), Task: []byte("task"),
		End: []byte("end")}
	if err := Next(Checkpoint{}, refused, nil); err != nil {
		t.Errorf("a task whose first round the budget refused: %v", err)
	}
}

func TestNextRefuses(t *testing.T) {
	for _, test := range []struct {
		name, want string
		change     func(prev, next *Checkpoint, entries *[]Entry)
	}{
		{"round again", "does not follow", func(_, next *Checkpoint, _ *[]Entry) { next.Cursor.Round = 2 }},
		{"round skipped", "does not follow", func(_, next *Checkpoint, _ *[]Entry) { next.Cursor.Round = 4 }},
		{"after the last number", "does not follow", func(prev, next *Checkpoint, _ *[]Entry) {
			prev.Cursor.Round, next.Cursor.Round = math.MaxUint64, 1
		}},
		{"another task hash", "use another state folder", func(_, next *Checkpoint,
			_ *[]Entry) {
			next.Cursor.TaskHash[5] = 1
		}},
		{"another task message", "planned once", func(_, next *Checkpoint, _ *[]Entry) { next.Task = []byte("other") }},
		{"after the end", "nothing may follow", func(prev, _ *Checkpoint, _ *[]Entry) {
			prev.NextRound, prev.End = nil,
				[]byte("end")
		}},
		{"stream sequence not above", "rolled back", func(_, next *Checkpoint,
			_ *[]Entry) {
			next.Cursor.BatchSequence = 17
		}},
		{"no entries", "brings 0 ledger entries, want 2", func(_, _ *Checkpoint, entries *[]Entry) { *entries = nil }},
		{"no reservation", "brings 1 ledger entries, want 2", func(_, _ *Checkpoint,
			entries *[]Entry) {
			*entries = (*entries)[:1]
		}},
		{"entries in the wrong order", "is reserved of round 4, want spent", func(_, _ *Checkpoint, entries *[]Entry) {
			*entries = []Entry{(*entries)[1], (*entries)[0]}
		}},
		{"changed entry", "damaged or changed", func(_, _ *Checkpoint, entries *[]Entry) { (*entries)[0].Epsilon /= 2 }},
		{"another batch", "the cursor has", func(_, next *Checkpoint, _ *[]Entry) { next.Cursor.BatchHash[7] = 1 }},
		{"another chain", "the ledger was damaged or changed", func(prev, _ *Checkpoint,
			_ *[]Entry) {
			prev.Ledger.Head.Hash[0]++
		}},
		{"wrong head", "names ledger head", func(_, next *Checkpoint, _ *[]Entry) { next.Ledger.Head.Hash[0]++ }},
		{"neither round nor end", "want exactly one", func(_, next *Checkpoint, _ *[]Entry) { next.NextRound = nil }},
		{"both round and end", "want exactly one", func(_, next *Checkpoint, _ *[]Entry) { next.End = []byte("end") }},
		{"no algorithm state", "algorithm state is empty", func(_, next *Checkpoint, _ *[]Entry) { next.Algorithm = nil }},
		{"no batch hash", "zero batch hash", func(_, next *Checkpoint, _ *[]Entry) { next.Cursor.BatchHash = Hash{} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			prev, next, entries := step(t, false, false)
			test.change(&prev, &next, &entries)
			if err := Next(prev, next, entries); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("returned %v, want %q", err, test.want)
			}
		})
	}
	prev, next, entries := step(t, false, false)
	next.Cursor.Round = 5
	var order *OrderError
	if err := Next(prev, next, entries); !errors.As(err, &order) || order.Committed != 2 || order.Offered != 5 {
		t.Errorf("skipped rounds: %v, want an OrderError", err)
	}
	prev, next, entries = step(t, false, false)
	prev.Cursor.BatchSequence = 99
	var rollback *RollbackError
	if err := Next(prev, next, entries); !errors.As(err, &rollback) || rollback.Sequence != 18 || rollback.Earlier != 99 {
		t.Errorf("lower stream sequence: %v, want a RollbackError", err)
	}
}

// TestVerifyLedger checks that a checkpoint is refused with a ledger that is not its own.
func TestVerifyLedger(t *testing.T) {
	c, l := history(t)
	if err := c.VerifyLedger(Ledger{}, Entries(l.entries)); err != nil {
		t.Fatal(err)
	}
	for name, entries := range map[string][]Entry{
		"empty": nil, "cut": l.entries[:len(l.entries)-1], "without its beginning": l.entries[1:],
	} {
		if err := c.VerifyLedger(Ledger{}, Entries(entries)); err == nil {
			t.Errorf("ledger %s was accepted", name)
		}
	}
	other := c.Clone()
	other.Ledger.Counted++
	if err := other.VerifyLedger(Ledger{}, Entries(l.entries)); err == nil {
		t.Error("other sums were accepted")
	}
	var base Ledger
	for i, e := range l.entries { // any beginning may be gone, where its sums are known
		if err := c.VerifyLedger(base, Entries(l.entries[i:])); err != nil {
			t.Errorf("after %d entries: %v", i, err)
		}
		if err := base.Append(e); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCheckpointAndLedger: sums that do not belong to the cursor are refused.
func TestCheckpointAndLedger(t *testing.T) {
	c, _ := history(t)
	if err := c.validate(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(c *Checkpoint){
		"an open reservation after the end": func(c *Checkpoint) { c.NextRound, c.End = nil, []byte("end") },
		"of another round":                  func(c *Checkpoint) { c.Cursor.Round = 1 },
		"of another task":                   func(c *Checkpoint) { c.Ledger.TaskHash[0]++ },
		"one round more":                    func(c *Checkpoint) { c.Ledger.Steps++ },
		"more in a row than void":           func(c *Checkpoint) { c.Ledger.InARow++ },
		"users of no phase":                 func(c *Checkpoint) { c.Ledger.Most++ },
		"no charge is a number":             func(c *Checkpoint) { c.Ledger.Worst.Epsilon = math.NaN() },
		"another reservation":               func(c *Checkpoint) { c.Ledger.Open.Users++ },
		"a reservation that is not the last entry": func(c *Checkpoint) {
			c.Ledger.Open.Users++
			c.Ledger.Open.Hash = c.Ledger.Open.computeHash()
		},
		"entries of no round": func(c *Checkpoint) {
			_, *c, _ = ending(t)
			c.Ledger.Head.Length++
		},
		"no reservation":  func(c *Checkpoint) { c.Ledger.Open = Entry{} },
		"sums of nothing": func(c *Checkpoint) { c.Ledger.Head = head{} },
	} {
		other := c.Clone()
		change(&other)
		if other.validate() == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}
