package accounting

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestParseFraction(t *testing.T) {
	for s, want := range map[string]string{
		"1": "1", "1.0": "1", "0.9": "0.9", ".5": "0.5", "9/10": "0.9", "2/3": "2/3", "4/6": "2/3", "0.90": "0.9",
		"0.000000000000000001": "0.000000000000000001", "7/7": "1", "1/1024": "0.0009765625",
	} {
		f, err := ParseFraction(s)
		if err != nil || f.String() != want {
			t.Errorf("%q: %v (%v), want %s", s, f, err, want)
		}
	}
	for _, s := range []string{"", "0", "0.0", "1.1", "-0.5", "+1", "1e-1", "0,5", "1/0", "0/5", "3/2", "1/2/3", "1.",
		"nan",
		"0.1234567890123456789", "1/99999999999999999999999", " 1", "0x1", "1_0/10_0", "."} {
		if f, err := ParseFraction(s); err == nil {
			t.Errorf("%q is read as %v", s, f)
		}
	}
}

// TestFractionFloor is exact against rationals, where floats would not be.
func TestFractionFloor(t *testing.T) {
	if f, _ := ParseFraction("0.29"); f.Floor(100) != 29 {
		t.Errorf("0.29 of 100 is %d", f.Floor(100))
	}
	rapid.Check(t, func(t *rapid.T) {
		den := rapid.Uint64Range(1, 1e18).Draw(t, "den")
		num := rapid.Uint64Range(1, den).Draw(t, "num")
		n := rapid.Uint64().Draw(t, "n")
		d := gcd(num, den)
		f := Fraction{num / d, den / d}
		want := new(big.Int).Mul(new(big.Int).SetUint64(num), new(big.Int).SetUint64(n))
		want.Quo(want, new(big.Int).SetUint64(den))
		if f.Floor(n) != want.Uint64() {
			t.Fatalf("floor(%d/%d * %d) = %d, want %v", num, den, n, f.Floor(n), want)
		}
		back, err := ParseFraction(f.String())
		if err != nil || back != f {
			t.Fatalf("%d/%d prints as %s, reads back as %v (%v)", num, den, f, back, err)
		}
		exact := new(big.Rat).SetFrac(new(big.Int).SetUint64(f.num), new(big.Int).SetUint64(f.den))
		if new(big.Rat).SetFloat64(f.Float()).Cmp(exact) > 0 {
			t.Fatalf("%v as a float is above it", f)
		}
	})
}

func FuzzParseFraction(f *testing.F) {
	for _, s := range []string{"1", "0.9", "2/3", "1/0", "0x", "999999999999999999/1000000000000000000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseFraction(s)
		if err != nil {
			return
		}
		if back, err := ParseFraction(v.String()); err != nil || back != v {
			t.Errorf("%q prints as %s, reads back as %v (%v)", s, v, back, err)
		}
		if n := v.Floor(1000); n > 1000 {
			t.Errorf("%q of 1000 is %d", s, n)
		}
	})
}

// TestCacheConcurrent: many callers get the profiles that are built without a cache, in bounded memory.
func TestCacheConcurrent(t *testing.T) {
	const most = 32
	c := newCache[depth, *profile](most)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 4 * most {
				b := depth{binomial{n: int64(200 + (i*7+w)%(2*most)), k: fairCoin}, rungs}
				if got, want := c.of(b, newProfile), newProfile(b); !reflect.DeepEqual(got, want) {
					t.Errorf("%+v: %v, without a cache %v", b, got, want)
				}
			}
		})
	}
	wg.Wait()
	if n := len(c.entries); n != most || n != c.order.Len() {
		t.Errorf("%d profiles kept in a list of %d, want %d", n, c.order.Len(), most)
	}
}

// A share that no decimal writes is rounded up beside an epsilon: the epsilon holds for the printed share then, and
// costs of the printed share are not above it.
func TestFractionJSONIsNeverBelow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		den := rapid.Uint64Range(1, 1000).Draw(t, "den")
		num := rapid.Uint64Range(1, den).Draw(t, "num")
		f, err := ParseFraction(fmt.Sprintf("%d/%d", num, den))
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		printed, ok := new(big.Rat).SetString(string(data))
		exact := new(big.Rat).SetFrac64(int64(num), int64(den))
		if !ok || printed.Cmp(exact) < 0 {
			t.Fatalf("%d/%d is written %s", num, den, data)
		}
		if read, err := strconv.ParseFloat(string(data), 64); err != nil || printed.Cmp(exact) != 0 &&
			new(big.Rat).SetFloat64(read).Cmp(exact) < 0 {
			t.Fatalf("%d/%d is read as %v, %v", num, den, read, err)
		}
		var again Fraction
		if err := json.Unmarshal(data, &again); err != nil {
			t.Fatal(err)
		}
		users := rapid.Uint64Range(1, 1<<32).Draw(t, "users")
		if again.Floor(users) != f.Floor(users) {
			t.Fatalf("%d of %d users at %v, %d at %s", f.Floor(users), users, f, again.Floor(users), data)
		}
	})
}
