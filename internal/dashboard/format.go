package dashboard

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/panlearn/panlearn/internal/cli"
	"github.com/panlearn/panlearn/internal/wording"
)

// upper prints an upper bound, rounded up.
func upper(x float64) string { return cli.Upper(x, 3) }

// count prints a whole number with commas between thousands.
func count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// number prints three significant digits, and no exponent for what people call ordinary numbers.
func number(x float64) string {
	switch a := math.Abs(x); {
	case a >= 1e15:
		return fmt.Sprintf("%.2e", x)
	case a >= 100:
		s := count(uint64(math.Round(a)))
		if x < 0 {
			return "−" + s
		}
		return s
	case x < 0:
		return "−" + strconv.FormatFloat(a, 'g', 3, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// percent formats a fraction in percent, with a space that does not break.
func percent(x float64) string { return fmt.Sprintf("%.1f\u00a0%%", 100*x) }

// lasted prints a duration with the precision that people read.
func lasted(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// clock prints a time of day, with the date if that is not today.
func clock(at, now time.Time) string {
	at, now = at.UTC(), now.UTC()
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format("15:04:05 UTC")
	}
	return at.Format("2006-01-02 15:04:05 UTC")
}

// counted prints how many of a noun there are.
func counted(n uint64, of wording.Noun) string { return count(n) + " " + of.Of(n) }

// capital returns s with its first letter, of one byte, in upper case.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// signal returns the ratio of a noisy gradient's norm to its noise's norm; false if there was no gradient. Without a
// signal it is about 1.
func (p roundPoint) signal() (float64, bool) {
	if p.Gradient == 0 || p.Noise == 0 {
		return 0, false
	}
	r := p.Gradient / p.Noise
	return r, finite(r)
}

// countOf formats a number of things with a regular plural in s.
func countOf(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return count(n) + " " + thing + "s"
}

// size prints a size.
func size(n uint64) string {
	x, unit := float64(n), "B"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if x < 1024 {
			break
		}
		x, unit = x/1024, next
	}
	return number(x) + " " + unit
}
