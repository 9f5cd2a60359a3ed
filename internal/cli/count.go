package cli

import "fmt"

// Count is a number of things: 1 round, 43 rounds.
func Count[N ~int | ~int64 | ~uint32 | ~uint64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
