package client_test

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/client"
)

// Whatever tasks charge when, with a clock that jumps both ways: within any period of the ledger's time, no user's tasks
// cost more than the total, and what is refused changes nothing.
func TestTotalsHoldInEveryWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ledger := client.NewMemoryLedger()
		p := client.Policy{MaxTotalEpsilon: 3, Period: 100 * time.Second}
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
				latest = clock // what the device was told last: time does not run back
			}
			c := client.Charge{Task: stream.Hash{rapid.ByteRange(1, 5).Draw(t, "task")}, Name: "t",
				Epsilon: rapid.Float64Range(0.1, 2).Draw(t, "epsilon"), Delta: 1e-9}
			err := ledger.Update(clock, []client.Key{client.Everyone}, func(now time.Time, charges [][]client.Charge) (err error) {
				c.At = now
				charges[0], err = client.TryCharge(p, charges[0], c)
				return err
			})
			var refused *client.RefusedError
			if errors.As(err, &refused) {
				continue
			}
			must2(t, err)
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

func must2(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func FuzzAccount(f *testing.F) {
	one := client.Account{Charges: []client.Charge{{Task: stream.Hash{1}, Name: "a9a", Epsilon: 1, Delta: 1e-6, Standing: 300, Anonymous: true, At: time.UnixMilli(1e12)}}}
	data, err := one.MarshalBinary()
	must(f, err)
	f.Add(data)
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var a client.Account
		if a.UnmarshalBinary(data) != nil {
			return
		}
		again, err := a.MarshalBinary()
		must(t, err)
		var same client.Account
		must(t, same.UnmarshalBinary(again))
		if !reflect.DeepEqual(a, same) || (data[0] == again[0] && string(again) != string(data)) {
			t.Errorf("%x became %x", data, again)
		}
		if epsilon, delta := client.Spent(a.Charges, time.UnixMilli(1<<50), 0); math.IsNaN(epsilon) || math.IsNaN(delta) {
			t.Errorf("spent %v, %v", epsilon, delta)
		}
	})
}
