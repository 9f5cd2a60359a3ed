package object

import "bytes"

// mostExact is 2^53: up to it a float64 holds every whole number.
const mostExact = 1 << 53

// inexact reports whether a JSON value is a whole number, written without a fraction or an exponent, beyond 2^53.
func inexact(value []byte) bool {
	digits := bytes.TrimPrefix(value, []byte("-"))
	n := uint64(0)
	for _, b := range digits {
		if b < '0' || b > '9' {
			return false // no whole number, whatever came before
		}
		n = min(n*10+uint64(b-'0'), mostExact+1)
	}
	return n > mostExact
}
