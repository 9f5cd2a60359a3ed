package consent

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/ledger"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// try charges an account as a client does for an event whose outcome it learns at once.
func try(p Policy, charges []ledger.Charge, c ledger.Charge) ([]ledger.Charge, error) {
	if err := p.AffordTotal(charges, c, c.At); err != nil {
		return nil, err
	}
	charges = ledger.Add(charges, c, 1, 1, math.MaxUint64)
	ledger.Settle(charges, c.Task, 1, c.At)
	return charges, nil
}

// Whatever tasks charge when, with a clock that jumps both ways: within any period of the ledger's time, no user's
// tasks cost more than the total, and what is refused changes nothing.
func TestTotalsHoldInEveryWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book := memory.NewLedger()
		p := Policy{MaxTotalEpsilon: 3, Period: 100 * time.Second}
		type paid struct {
			task    byte
			epsilon float64
			at      time.Time
		}
		var history []paid
		clock := time.UnixMilli(1e12)
		var latest time.Time
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			clock = clock.Add(time.Duration(rapid.IntRange(-150, 150).Draw(t, "seconds")) * time.Second)
			if clock.After(latest) {
				latest = clock // the time that the device got last: time does not run back
			}
			c := ledger.Charge{Task: stream.Hash{rapid.ByteRange(1, 5).Draw(t, "task")}, Name: "t",
				Epsilon: rapid.Float64Range(0.1, 2).Draw(t, "epsilon"), Delta: 1e-9}
			err := book.Update(clock, []participation.Key{ledger.Everyone},
				func(now time.Time, charges [][]ledger.Charge) (err error) {
					c.At = now
					charges[0], err = try(p, charges[0], c)
					return err
				})
			var refused *RefusedError
			if errors.As(err, &refused) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			history = append(history, paid{c.Task[0], c.Epsilon, latest})
		}
		for _, end := range history {
			most := map[byte]float64{} // a user has one event in a task
			for _, h := range history {
				if !h.at.After(end.at) && end.at.Sub(h.at) <= p.Period {
					most[h.task] = math.Max(most[h.task], h.epsilon)
				}
			}
			total := 0.0
			for _, e := range most {
				total += e
			}
			if total > p.MaxTotalEpsilon*(1+1e-8) {
				t.Fatalf("a window that ends at %v cost %v", end.at, total)
			}
		}
	})
}

// A charge that was made while the clock was set back is as young as any other when the clock is right again.
func TestChargeUnderAClockSetBackStaysYoung(t *testing.T) {
	book := memory.NewLedger()
	p := Policy{MaxTotalEpsilon: 2, Period: 10 * time.Hour}
	right := time.UnixMilli(1e12)
	charge := func(task byte, clock time.Time) error {
		return book.Update(clock, []participation.Key{ledger.Everyone},
			func(now time.Time, charges [][]ledger.Charge) (err error) {
				charges[0], err = try(p, charges[0], ledger.Charge{Task: stream.Hash{task}, Name: "t", Epsilon: 1, At: now})
				return err
			})
	}
	must(t, charge(1, right))
	must(t, charge(2, right.Add(-1000*time.Hour)))
	var refused *RefusedError
	if err := charge(3, right.Add(time.Hour)); !errors.As(err, &refused) || refused.Field != "total epsilon" {
		t.Errorf("the third task in an hour: %v, want a refusal of total epsilon", err)
	}
	must(t, charge(3, right.Add(11*time.Hour)))
}
