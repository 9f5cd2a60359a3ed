package ledger

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/panlearn/panlearn/stream"
)

func FuzzAccount(f *testing.F) {
	one := Account{Charges: []Charge{{Task: stream.Hash{1}, Name: "a9a", Epsilon: 1, Delta: 1e-6, Standing: 300,
		Anonymous: true, ByUser: true, At: time.UnixMilli(1e12)}}}
	data, err := one.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, data []byte) {
		var a Account
		if a.UnmarshalBinary(data) != nil {
			return
		}
		again, err := a.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var same Account
		if err := same.UnmarshalBinary(again); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, same) || string(again) != string(data) {
			t.Errorf("%x became %x", data, again)
		}
		if epsilon, delta := Spent(a.Charges, time.UnixMilli(1<<50), 0); math.IsNaN(epsilon) || math.IsNaN(delta) {
			t.Errorf("spent %v, %v", epsilon, delta)
		}
	})
}

// A charge counts in every period while an outcome is open, or might be: nobody knows how many are, of a task that a
// lost ledger began again.
func TestWhatIsOpenCountsForEver(t *testing.T) {
	now := time.UnixMilli(1e12)
	old := Charge{Epsilon: 1, Delta: 1e-6, Standing: 2, At: now.Add(-time.Hour)}
	for _, c := range []struct {
		open uint64
		lost bool
		want float64
	}{{0, false, 0}, {1, false, 1}, {0, true, 1}} {
		old.Open, old.Lost = c.open, c.lost
		if epsilon, _ := Spent([]Charge{old}, now, time.Minute); epsilon != c.want {
			t.Errorf("open %d, lost %t: %v, want %v", c.open, c.lost, epsilon, c.want)
		}
	}
}
