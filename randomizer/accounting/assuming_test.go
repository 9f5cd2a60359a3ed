package accounting

import "testing"

// Trusts that rely upon users' noise say upon whose: a share of every cohort, not of all users. Pan's floors rely upon nobody's.
func TestAssumingNamesEveryCohort(t *testing.T) {
	nine, err := ParseFraction("0.90")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		trust  Trust
		honest Fraction
		want   string
	}{
		{Shuffle, nine, ", if in every cohort a share 0.9 of the users planned for is honest"},
		{ShufflePan, nine, ", if in every cohort a share 0.9 of the users planned for is honest"},
		{Shuffle, One, ", if in every cohort all of the users planned for are honest"},
		{Pan, nine, ""},
	} {
		if got := c.trust.Assuming(c.honest); got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.trust, c.honest, got, c.want)
		}
	}
}
