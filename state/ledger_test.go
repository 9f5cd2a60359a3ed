package state

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var (
	testTask  = Hash{1}
	testBatch = Hash{2}
	roomy     = Cost{Epsilon: 10, Delta: 1e-3}
)

func reservation(round uint64, epsilon float64) Entry {
	return Entry{Round: round, Users: 90, NoiseTrials: 900, Epsilon: epsilon, Delta: 1e-6, TaskHash: testTask}
}

func batch(round uint64, epsilon float64) Entry {
	return Entry{Round: round, Attempt: 1, Users: 100, NoiseTrials: 1000, Epsilon: epsilon, Delta: 1e-6,
		TaskHash: testTask, BatchHash: testBatch}
}

// A book is a ledger with the entries that it sums up.
type book struct {
	Ledger
	entries []Entry
}

func (b *book) keep(e Entry, err error) (Entry, error) {
	if err == nil {
		b.entries = append(b.entries, e)
	}
	return e, err
}

func (b *book) Reserve(e Entry, budget Cost) (Entry, error) {
	return b.keep(b.Ledger.Reserve(e, budget))
}
func (b *book) Spend(e Entry) (Entry, error) { return b.keep(b.Ledger.Spend(e)) }
func (b *book) Void(round, attempt uint64, batch Hash) (Entry, error) {
	return b.keep(b.Ledger.Void(round, attempt, batch))
}

// must returns e and fails the test on an error.
func must(t *testing.T) func(Entry, error) Entry {
	return func(e Entry, err error) Entry {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}

// TestSpentIsWorstUser follows the charge through a reservation, a cheaper batch, a void round and an open one.
func TestSpentIsWorstUser(t *testing.T) {
	must := must(t)
	l := new(book)
	want := func(epsilon float64) {
		t.Helper()
		if got := l.Spent(); got.Epsilon != epsilon {
			t.Errorf("spent %v, want epsilon %v", got, epsilon)
		}
	}
	want(0)
	must(l.Reserve(reservation(1, 1), roomy))
	want(1)
	must(l.Spend(batch(1, 0.8)))
	want(0.8)
	must(l.Reserve(reservation(2, 0.9), roomy))
	must(l.Void(2, 3, testBatch))
	want(0.9)
	must(l.Reserve(reservation(3, 1), roomy))
	want(1)
	if !l.IsOpen() {
		t.Error("round 3 is not open")
	}
	must(l.Spend(batch(3, 1.5)))
	want(1.5)
	again, err := ReadLedger(Entries(l.entries))
	if err != nil || again != l.Ledger || again.Head.Length != 6 {
		t.Errorf("ReadLedger: %v", err)
	}
}

// TestSums follows what else a ledger sums up: the users of phases, who are as many as the largest round of theirs
// has, and void rounds in a row.
func TestSums(t *testing.T) {
	must, l := must(t), new(book)
	for i, r := range []struct {
		phase, users          uint64 // no users: void
		counted, voids, inRow uint64 // after it
	}{
		{0, 100, 100, 0, 0}, {0, 0, 100, 1, 1}, {0, 0, 100, 2, 2}, {0, 90, 190, 2, 0}, {5, 70, 260, 2, 0}, {5, 95, 285, 2, 0},
		{5, 0, 285, 3, 1},
		{5, 80, 285, 3, 0}, {6, 40, 325, 3, 0}, {0, 10, 335, 3, 0}, {6, 0, 335, 4, 1}, {0, 0, 335, 5, 2},
	} {
		round := uint64(i + 1)
		e := reservation(round, 1)
		e.Phase = r.phase
		must(l.Reserve(e, roomy))
		if r.users == 0 {
			must(l.Void(round, 1, testBatch))
		} else {
			e = batch(round, 1)
			e.Users = r.users
			must(l.Spend(e))
		}
		if l.Users() != r.counted || l.Voids != r.voids || l.InARow != r.inRow || l.settled() != round {
			t.Errorf("round %d: %d users, %d void, %d in a row, %d settled; want %+v", round, l.Users(), l.Voids, l.InARow,
				l.settled(), r)
		}
	}
}

func TestBudget(t *testing.T) {
	must := must(t)
	l := new(book)
	budget := Cost{Epsilon: 1, Delta: 1e-6}
	must(l.Reserve(reservation(1, 1), budget)) // exactly the budget
	must(l.Spend(batch(1, 0.75)))
	before := l.Ledger
	_, err := l.Reserve(reservation(2, 1.25), budget)
	var refused *BudgetError
	if !errors.As(err, &refused) {
		t.Fatalf("a round above the budget: %v, want a BudgetError", err)
	}
	if refused.Round != 2 || refused.Spent.Epsilon != 0.75 || refused.Increment.Epsilon != 1.25 ||
		refused.Budget != budget {
		t.Errorf("BudgetError is %+v", refused)
	}
	for _, part := range []string{"round 2", "spent so far epsilon 0.75", "refused increment epsilon 1.25",
		"budget epsilon 1,"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	if l.Ledger != before {
		t.Error("a refused round changed the ledger")
	}
	e := reservation(2, 0.5)
	e.Delta = 2e-6
	if _, err := l.Reserve(e, budget); !errors.As(err, &refused) {
		t.Errorf("a round above the budget's delta: %v, want a BudgetError", err)
	}
	for _, bad := range []Cost{{math.NaN(), 0}, {math.Inf(1), 0}, {-1, 0}, {1, math.NaN()}, {1, 2}, {1, -1}} {
		if _, err := l.Reserve(reservation(2, 0.5), bad); err == nil || errors.As(err, &refused) {
			t.Errorf("budget %v: %v, want a refusal of the budget", bad, err)
		}
	}
}

func TestLedgerRefuses(t *testing.T) {
	with := func(e Entry, f func(*Entry)) Entry { f(&e); return e }
	for _, test := range []struct {
		name string
		run  func(l *book) error
	}{
		{"spend without reservation", func(l *book) error { _, err := l.Spend(batch(2, 1)); return err }},
		{"void without reservation", func(l *book) error { _, err := l.Void(2, 1, testBatch); return err }},
		{"settle twice", func(l *book) error { _, err := l.Spend(batch(1, 1)); return err }},
		{"reserve a round again", func(l *book) error { _, err := l.Reserve(reservation(1, 1), roomy); return err }},
		{"skip a round", func(l *book) error { _, err := l.Reserve(reservation(3, 1), roomy); return err }},
		{"another task", func(l *book) error {
			_, err := l.Reserve(with(reservation(2, 1), func(e *Entry) { e.TaskHash[9] = 1 }), roomy)
			return err
		}},
		{"two reservations", func(l *book) error {
			if _, err := l.Reserve(reservation(2, 1), roomy); err != nil {
				return nil
			}
			_, err := l.Reserve(reservation(3, 1), roomy)
			return err
		}},
		{"batch in a reservation", func(l *book) error {
			_, err := l.Reserve(with(reservation(2, 1), func(e *Entry) { e.BatchHash = testBatch }), roomy)
			return err
		}},
		{"no users", func(l *book) error {
			_, err := l.Reserve(with(reservation(2, 1), func(e *Entry) { e.Users = 0 }), roomy)
			return err
		}},
		{"NaN", func(l *book) error { _, err := l.Reserve(reservation(2, math.NaN()), roomy); return err }},
		{"infinity", func(l *book) error { _, err := l.Reserve(reservation(2, math.Inf(1)), roomy); return err }},
		{"negative", func(l *book) error { _, err := l.Reserve(reservation(2, -1), roomy); return err }},
		{"negative zero", func(l *book) error {
			_, err := l.Reserve(reservation(2, math.Copysign(0, -1)), roomy)
			return err
		}},
		{"void below its reservation", func(l *book) error {
			must := must(t)
			must(l.Reserve(reservation(2, 1), roomy))
			_, err := l.seal(reservation(2, 0.5), Void)
			return err
		}},
		{"void with other users than its reservation", func(l *book) error {
			must := must(t)
			must(l.Reserve(reservation(2, 1), roomy))
			_, err := l.seal(with(reservation(2, 1), func(e *Entry) { e.Users++ }), Void)
			return err
		}},
		{"settled in another phase", func(l *book) error {
			must := must(t)
			must(l.Reserve(with(reservation(2, 1), func(e *Entry) { e.Phase = 3 }), roomy))
			_, err := l.seal(with(batch(2, 1), func(e *Entry) { e.Phase = 2 }), Spent)
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			must := must(t)
			l := new(book)
			must(l.Reserve(reservation(1, 1), roomy))
			must(l.Spend(batch(1, 1)))
			if err := test.run(l); err == nil {
				t.Error("accepted")
			}
			if _, err := ReadLedger(Entries(l.entries)); err != nil {
				t.Errorf("a refusal left a broken ledger: %v", err)
			}
		})
	}
}

// TestLedgerProperty plays any operations: the ledger stays verifiable, the charge is the model's, and any single
// changed entry is found.
func TestLedgerProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := new(book)
		var charge []float64
		open := false
		for range rapid.IntRange(0, 30).Draw(t, "operations") {
			epsilon := rapid.Float64Range(0, 2).Draw(t, "epsilon")
			round := uint64(len(charge))
			var err error
			valid := open
			switch rapid.IntRange(0, 2).Draw(t, "operation") {
			case 0:
				_, err = l.Reserve(reservation(round+1, epsilon), roomy)
				if valid = !open; valid {
					charge, open = append(charge, epsilon), true
				}
			case 1:
				_, err = l.Spend(batch(round, epsilon))
				if valid {
					charge[round-1], open = epsilon, false
				}
			case 2:
				_, err = l.Void(round, 1, testBatch)
				open = false
			}
			if valid != (err == nil) {
				t.Fatalf("valid %t, returned %v", valid, err)
			}
		}
		var worst float64
		for _, e := range charge {
			worst = max(worst, e)
		}
		if got := l.Spent(); got.Epsilon != worst {
			t.Fatalf("spent %v, want %v", got, worst)
		}
		if len(l.entries) == 0 {
			return
		}
		changed := append([]Entry(nil), l.entries...)
		i := rapid.IntRange(0, len(changed)-1).Draw(t, "changed entry")
		changed[i].Users++
		if _, err := ReadLedger(Entries(changed)); err == nil {
			t.Fatal("a changed entry was not found")
		}
		changed[i].Hash = changed[i].computeHash()
		if other, err := ReadLedger(Entries(changed)); err == nil && other.Head == l.Head {
			t.Fatal("a changed entry with a fresh hash was not found")
		}
	})
}
