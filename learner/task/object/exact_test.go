package object

import "testing"

func TestInexact(t *testing.T) {
	for value, want := range map[string]bool{"0": false, "-0": false, "9007199254740992": false,
		"-9007199254740992": false,
		"9007199254740993":  true, "-9007199254740993": true, "18446744073709551616": true, "100000000000000000000000": true,
		"1e300": false, "9007199254740993.0": false, "9007199254740993e0": false, "true": false, "null": false,
		`"9007199254740993"`: false,
		"[9007199254740993]": false, "007": false} {
		if got := inexact([]byte(value)); got != want {
			t.Errorf("%s: %v, want %v", value, got, want)
		}
	}
}
