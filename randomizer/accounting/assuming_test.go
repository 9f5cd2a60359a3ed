package accounting

import "testing"

// Trusts that rely upon others' noise say upon whose: a share of every cohort, not of all users. Pan and local rely
// upon nobody's.
func TestAssumingNamesEveryCohort(t *testing.T) {
	nine, err := ParseFraction("0.90")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		trust  Trust
		honest Fraction
		who    string
		want   string
	}{
		{Shuffle, nine, "users", ", if in every cohort a share 0.9 of the users planned for is honest"},
		{ShufflePan, nine, "users", ", if in every cohort a share 0.9 of the users planned for is honest"},
		{Shuffle, One, "silos", ", if in every cohort all of the silos planned for are honest"},
		{Pan, nine, "users", ""},
		{Local, One, "silos", ""},
		{Split, nine, "users", ", if one of the two operators is honest"},
	} {
		if got := c.trust.Assuming(c.honest, c.who); got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.trust, c.honest, got, c.want)
		}
	}
}
