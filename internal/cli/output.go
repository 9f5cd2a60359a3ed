package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// PrintJSON writes v as the one JSON document of a command.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// JSON is the flag --json of a command that prints one result.
type JSON bool

// Flag adds the flag.
func (j *JSON) Flag(flags *pflag.FlagSet) { flags.BoolVar((*bool)(j), "json", false, "print JSON") }

// Print prints v as JSON where the flag is given, otherwise as text by human.
func (j JSON) Print(w io.Writer, v any, human func(io.Writer) error) error {
	if j {
		return PrintJSON(w, v)
	}
	return human(w)
}

// Writable refuses a file that a flag names and that cannot be written, before there is work that would be
// lost. It leaves an existing file as it is; it ignores the empty path and paths of other than plain files.
func Writable(flag, path string) error {
	there, err := os.Stat(path)
	if path == "" || err == nil && !there.Mode().IsRegular() && !there.IsDir() {
		return nil
	}
	_, missing := os.Lstat(path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return Usagef("%s: %w", flag, err)
	}
	f.Close()
	if missing != nil {
		os.Remove(path)
	}
	return nil
}

// Terminal reports whether a person watches the file.
func Terminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Upper prints an upper bound, such as an epsilon that is spent, with at most digits significant digits (1 to 15) as %g
// does: the least such decimal that is at least x when it is read as a float64. Rounded to nearest, half of all bounds
// would be none. NaN and infinities are printed as they are.
func Upper(x float64, digits int) string { return outward(x, digits, "+1") }

// Lower rounds a lower bound, as Upper does an upper one: it returns the greatest such decimal that is at
// most x.
func Lower(x float64, digits int) string { return outward(x, digits, "-1") }

// outward steps, by one unit of the last digit, from the nearest decimal to the next one, where x is between them.
func outward(x float64, digits int, step string) string {
	near := strconv.FormatFloat(x, 'g', digits, 64)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return near
	}
	read, _ := strconv.ParseFloat(near, 64) // beyond the largest float64 it is infinite, which is a bound, too
	if read == x || (read > x) == (step == "+1") {
		return near
	}
	_, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', -1, 64), "e") // of x: near may be the next power of ten
	power, err := strconv.Atoi(exponent)
	if err != nil {
		panic("a float64 without an exponent: " + err.Error())
	}
	next := decimal(near)
	return next.Add(next, decimal(step+"e"+strconv.Itoa(power-digits+1))).Text('g', digits)
}

// decimal reads far more digits than a bound has.
func decimal(text string) *big.Float {
	x, ok := new(big.Float).SetPrec(128).SetString(text)
	if !ok {
		panic("not a decimal: " + text)
	}
	return x
}

// Count returns a number with the thing counted: 1 round, 43 rounds.
func Count[N ~int | ~int64 | ~uint32 | ~uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
