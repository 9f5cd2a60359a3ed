package draft

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// plain is text that YAML reads as itself and nobody as something else.
var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// text writes a string in YAML, in quotes where it could be taken for anything else.
func text(s string) string {
	if plain.MatchString(s) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n",
		"inf", "nan"}, strings.ToLower(s)) {
		return s
	}
	return strconv.Quote(s)
}

// texts writes a list.
func texts(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = text(w)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// decimal writes a number, without an exponent where that is readable.
func decimal(x float64) string {
	if a := math.Abs(x); a == 0 || a >= 1e-6 && a < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// mapping writes keys and values on one line.
func mapping(fields []field) string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.key + ": " + f.value
	}
	return "{" + strings.Join(out, ", ") + "}"
}

// lineWidth is the column at which comments are wrapped.
const lineWidth = 140

// comment writes words as lines of a comment.
func comment(b *strings.Builder, indent, words string) {
	line := indent + "#"
	for _, w := range strings.Fields(words) {
		if len(line)+1+len(w) > lineWidth && line != indent+"#" {
			b.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + w
	}
	b.WriteString(line + "\n")
}
