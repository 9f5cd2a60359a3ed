package cli

import "testing"

func TestCount(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 rounds", 1: "1 round", 43: "43 rounds"} {
		if got := Count(n, "round"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
