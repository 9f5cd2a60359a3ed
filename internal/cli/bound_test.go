package cli

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBoundsAreOutward(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.OneOf(
			rapid.Float64(),
			rapid.Float64Range(-100, 100),
			rapid.Map(rapid.IntRange(-99999, 99999), func(n int) float64 { return float64(n) / 1000 }),
			rapid.Map(rapid.IntRange(-300, 300), func(n int) float64 { return math.Nextafter(math.Pow(10, float64(n)), 0) }),
		).Draw(t, "x")
		digits := rapid.IntRange(1, 15).Draw(t, "digits")
		upper, lower := Upper(x, digits), Lower(x, digits)
		if read := readBound(t, upper, digits); read < x {
			t.Errorf("Upper(%v, %d) = %s, which is below it", x, digits, upper)
		}
		if read := readBound(t, lower, digits); read > x {
			t.Errorf("Lower(%v, %d) = %s, which is above it", x, digits, lower)
		}
		near := strconv.FormatFloat(x, 'g', digits, 64)
		if read, _ := strconv.ParseFloat(near, 64); read == x && (upper != near || lower != near) {
			t.Errorf("%s and %s for %s, which is exact", lower, upper, near)
		}
		if upper == lower {
			return
		}
		// Neighbours: the difference is one unit of the last digit of x, so there is no tighter bound of as many
		// digits.
		_, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', -1, 64), "e")
		power, err := strconv.Atoi(exponent)
		if err != nil {
			t.Fatal(err)
		}
		unit := exactly(t, "1e"+strconv.Itoa(power-digits+1))
		if gap := new(big.Rat).Sub(exactly(t, upper), exactly(t, lower)); gap.Cmp(unit) != 0 {
			t.Errorf("%v between %s and %s: they differ by %s, want %s", x, lower, upper, gap, unit)
		}
	})
}

// readBound reads a bound as others would, and counts its digits.
func readBound(t *rapid.T, text string, digits int) float64 {
	mantissa, _, _ := strings.Cut(strings.TrimLeft(text, "-+"), "e")
	if n := len(strings.TrimLeft(strings.Replace(mantissa, ".", "", 1), "0")); n > digits {
		t.Errorf("%s: %d digits, want at most %d", text, n, digits)
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(x, 0) {
		t.Fatal(err)
	}
	return x
}

func exactly(t *rapid.T, decimal string) *big.Rat {
	r, ok := new(big.Rat).SetString(decimal)
	if !ok {
		t.Fatalf("%q is no decimal", decimal)
	}
	return r
}

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		x            float64
		digits       int
		lower, upper string
	}{
		{0.995, 3, "0.995", "0.995"},
		{0.1, 6, "0.1", "0.1"},
		{1e-6, 3, "1e-06", "1e-06"},
		{0, 3, "0", "0"},
		{0.99849, 3, "0.998", "0.999"},
		{0.9996, 3, "0.999", "1"},
		{9.991, 3, "9.99", "10"},
		{math.Nextafter(1, 2), 6, "1", "1.00001"},
		{math.Nextafter(1, 0), 6, "0.999999", "1"},
		{-0.99849, 3, "-0.999", "-0.998"},
		{math.MaxFloat64, 3, "1.79e+308", "1.8e+308"},
		{math.Inf(1), 3, "+Inf", "+Inf"},
		{math.Inf(-1), 3, "-Inf", "-Inf"},
		{math.NaN(), 3, "NaN", "NaN"},
	} {
		if lower, upper := Lower(c.x, c.digits), Upper(c.x, c.digits); lower != c.lower || upper != c.upper {
			t.Errorf("%v with %d digits: %s and %s, want %s and %s", c.x, c.digits, lower, upper, c.lower, c.upper)
		}
	}
}
