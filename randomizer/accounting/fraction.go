package accounting

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// maxFractionText bounds the text of a fraction: two numbers of 18 digits, a
// sign of division, and room for zeros.
const maxFractionText = 48

// Fraction is an exact rational in (0, 1]: the share of a planned cohort that is
// assumed honest. Of n planned reports at most n - Floor(n) are dishonest, as an
// absolute count. The zero value is refused wherever a Fraction is used; nobody
// gets an honesty assumption by forgetting one.
type Fraction struct {
	num, den uint64 // lowest terms, 0 < num <= den <= 10^18 once parsed
}

// One is the fraction 1: everybody is honest.
var One = Fraction{1, 1}

// ParseFraction reads a decimal such as "0.9" or a quotient such as "9/10",
// exactly. Exponents, signs and more than 18 digits are refused.
func ParseFraction(s string) (Fraction, error) {
	refuse := func() (Fraction, error) {
		return Fraction{}, fmt.Errorf("fraction %q: want a decimal or a/b in (0, 1], at most 18 digits", clip(s))
	}
	if len(s) == 0 || len(s) > maxFractionText {
		return refuse()
	}
	num, den, quotient := strings.Cut(s, "/")
	if !quotient {
		whole, frac, dotted := strings.Cut(s, ".")
		if dotted && frac == "" {
			return refuse()
		}
		frac = strings.TrimRight(frac, "0")
		if len(frac) > 18 {
			return refuse()
		}
		num, den = whole+frac, "1"+strings.Repeat("0", len(frac))
	}
	a, okA := parseDigits(num)
	b, okB := parseDigits(den)
	if !okA || !okB || a == 0 || a > b {
		return refuse()
	}
	d := gcd(a, b)
	return Fraction{a / d, b / d}, nil
}

// Floor returns floor(gamma*n) exactly.
func (f Fraction) Floor(n uint64) uint64 {
	if f.den == 0 {
		return 0
	}
	hi, lo := bits.Mul64(f.num, n)
	// num <= den makes the quotient at most n, so Div64 cannot overflow.
	q, _ := bits.Div64(hi, lo, f.den)
	return q
}

// Float returns the fraction rounded towards zero, so that a count derived from
// the float never credits more honest users than the fraction does.
func (f Fraction) Float() float64 {
	if f.den == 0 {
		return 0
	}
	exact := new(big.Rat).SetFrac(new(big.Int).SetUint64(f.num), new(big.Int).SetUint64(f.den))
	v, _ := exact.Float64()
	if new(big.Rat).SetFloat64(v).Cmp(exact) > 0 {
		v = math.Nextafter(v, 0)
	}
	return v
}

// IsZero reports whether f is the zero value, which is no fraction.
func (f Fraction) IsZero() bool { return f.den == 0 }

// String returns a form that ParseFraction reads back to the same value:
// a decimal where it terminates within 18 digits, else a quotient.
func (f Fraction) String() string {
	if f.den == 0 {
		return "0"
	}
	if f.den == 1 {
		return strconv.FormatUint(f.num, 10)
	}
	for digits, scale := 1, uint64(10); digits <= 18; digits, scale = digits+1, scale*10 {
		if scale%f.den == 0 {
			return fmt.Sprintf("0.%0*d", digits, f.num*(scale/f.den))
		}
	}
	return fmt.Sprintf("%d/%d", f.num, f.den)
}

// MarshalText implements encoding.TextMarshaler, exactly.
func (f Fraction) MarshalText() ([]byte, error) {
	if f.IsZero() {
		return nil, fmt.Errorf("fraction 0: want a fraction in (0, 1]")
	}
	return []byte(f.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *Fraction) UnmarshalText(text []byte) error {
	v, err := ParseFraction(string(text))
	if err != nil {
		return err
	}
	*f = v
	return nil
}

// MarshalJSON writes a number: the exact decimal where there is one, else one
// just above, because an epsilon beside it holds for that share of honest
// users or more.
func (f Fraction) MarshalJSON() ([]byte, error) {
	if f.IsZero() {
		return nil, fmt.Errorf("fraction 0: want a fraction in (0, 1]")
	}
	s := f.String()
	if strings.Contains(s, "/") {
		// One unit of the last of 15 digits is more than a float64 below 1 is rounded by, so that it is above for
		// every reader.
		unit := new(big.Rat).SetFrac64(1, 1e15)
		up := new(big.Rat).SetFrac(new(big.Int).SetUint64(f.num), new(big.Int).SetUint64(f.den))
		if up.Add(up, unit).Add(up, unit); up.Cmp(big.NewRat(1, 1)) >= 0 {
			return []byte("1"), nil
		}
		up.Sub(up, new(big.Rat).Quo(unit, big.NewRat(2, 1))) // FloatString rounds to nearest
		s = up.FloatString(15)
	}
	return []byte(s), nil
}

// UnmarshalJSON reads a decimal number, or a string as ParseFraction does.
func (f *Fraction) UnmarshalJSON(data []byte) error {
	s := string(data)
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	return f.UnmarshalText([]byte(s))
}

func parseDigits(s string) (uint64, bool) {
	if s == "" {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	v, err := strconv.ParseUint(s, 10, 64)
	return v, err == nil && v <= 1e18
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
