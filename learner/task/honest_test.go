package task

import (
	"bytes"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// TestChoicesWithoutAWord: a Spec built by hand with a choice that no file can name has no canonical form, and neither
// has one without an honest fraction.
func TestChoicesWithoutAWord(t *testing.T) {
	for path, change := range map[string]func(*Privacy){
		"privacy.trust":           func(p *Privacy) { p.Trust = accounting.Split + 1 },
		"privacy.coin":            func(p *Privacy) { p.Coin = -1 },
		"privacy.profile":         func(p *Privacy) { p.Profile = accounting.Paper + 1 },
		"privacy.honest_fraction": func(p *Privacy) { p.HonestFraction = HonestFraction{} },
	} {
		s := mustParse(t, plain)
		change(&s.Privacy)
		if _, err := s.Canonical(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestWordsInTheCanonicalForm: other spellings of the words of privacy, and other JSON for them, are refused.
func TestWordsInTheCanonicalForm(t *testing.T) {
	data, err := mustParse(t, plain, "privacy.honest_fraction=0.9").Canonical()
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"trust":"shuffle"`, `"trust":"SHUFFLE"`}, {`"trust":"shuffle"`, `"trust":""`}, {`"trust":"shuffle"`, `"trust":0`},
		{`"trust":"shuffle",`, ``}, {`"coin":"fair"`, `"coin":"two"`}, {`"profile":"numeric"`, `"profile":"Paper"`},
		{`"honest_fraction":"0.9"`, `"honest_fraction":0.9`}, {`"honest_fraction":"0.9"`, `"honest_fraction":"0.90"`},
		{`"honest_fraction":"0.9"`, `"honest_fraction":"9/10"`}, {`"honest_fraction":"0.9",`, ``},
	} {
		changed := bytes.Replace(data, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(changed, data) {
			t.Fatalf("%s is not in %s", change[0], data)
		}
		if _, err := ParseCanonical(changed); err == nil {
			t.Errorf("%s is taken", change[1])
		}
		if _, err := ParseDeclaration(changed); err == nil {
			t.Errorf("%s is taken out of a snapshot", change[1])
		}
	}
}
