package task

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

func TestOverrides(t *testing.T) {
	s := mustParse(t, plain,
		"privacy.epsilon=0.5",
		"features.columns.0.max = 50",
		"features.columns.1.vocabulary=[x, 'y z', no]",
		"features.columns.1.unknown=drop",
		"schedule.rounds.max=7", // rounds is not in the file
		"schedule.deadline=1m30s",
		"label.positive.0=>50K", // no YAML value by itself
		"privacy.honest_fraction=9/10",
		"schedule.users=5",
		"schedule.users=2000", // the last one wins
	)
	if s.Privacy.Epsilon != 0.5 || s.Features.Columns[0].Max != 50 || s.Schedule.Rounds.Max != 7 ||
		time.Duration(s.Schedule.Deadline) != 90*time.Second || s.Label.Positive[0] != ">50K" ||
		s.Privacy.HonestFraction.String() != "0.9" || s.Schedule.Users != 2000 {
		t.Errorf("overrides did not arrive: %+v", s)
	}
	if c := s.Features.Columns[1]; !slices.Equal(c.Vocabulary, []string{"x", "y z", "no"}) || c.Unknown != Drop {
		t.Errorf("list override did not arrive: %+v", c)
	}
}

func TestOverrideRefusals(t *testing.T) {
	for set, path := range map[string]string{
		"privacy.epsilon":                        "--set",
		"=3":                                     "--set",
		"privacy..epsilon=1":                     "--set",
		"privacy.epsilon=-1":                     "privacy.epsilon",
		"privacy.epsilon=nan":                    "privacy.epsilon",
		"privacy.epsilon=":                       "",
		"privacy.epsilon.max=1":                  "--set",
		"privacy.budget=1":                       "privacy.budget",
		"quota.max=1":                            "quota",
		"features.columns.3.max=1":               "--set",
		"features.columns.-1.max=1":              "--set",
		"features.columns.x.max=1":               "--set",
		"features=[1]":                           "features",
		"label.positive=[a":                      "",
		"version=[1, 2]":                         "version",
		strings.Repeat("a.", maxDepth+1) + "b=1": "--set",
	} {
		_, err := Parse([]byte(plain), []string{set})
		var field *FieldError
		if !errors.As(err, &field) || field.Path != path {
			t.Errorf("--set %s: got %v, want a refusal at %q", set, err, path)
		}
	}
}

func TestDefaults(t *testing.T) {
	s := mustParse(t, plain)
	if s.Intercept != 1 || s.Model.ClipNorm != 1 || s.Privacy.Trust != accounting.Shuffle ||
		s.Privacy.HonestFraction.Fraction != accounting.One || s.Privacy.Coin != accounting.CoinFair ||
		s.Privacy.Profile != accounting.Numeric || s.Privacy.Seal != "hpke" ||
		s.Schedule.Algorithm != "pagd" || s.Schedule.Deadline != Duration(time.Minute) ||
		s.Events.Separator != "," || s.Features.Columns[0].Scale != Symmetric || s.Features.Columns[1].Unknown != Invalid {
		t.Errorf("defaults: %+v", s)
	}
	if s := mustParse(t, plain, "intercept=0"); s.Intercept != 0 {
		t.Errorf("intercept 0 became %v", s.Intercept)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.yaml")
	if err := os.WriteFile(path, []byte(plain), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Load(path, []string{"name=other"}); err != nil || s.Name != "other" {
		t.Errorf("got %+v, %v", s, err)
	}
	var field *FieldError
	if _, err := Load(path, []string{"name=No"}); !errors.As(err, &field) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want a refusal that names the file", err)
	}
	if _, err := Load(path+".missing", nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
}

// TestDeepNestingIsRefused: nesting is refused before anything recurses into it: a parser without this guard
// takes gigabytes here.
func TestDeepNestingIsRefused(t *testing.T) {
	for _, unit := range []string{"[", "{a: ", "- ", "? ", "a: [", "!!x ", "&a ", "- ["} {
		if _, err := Parse([]byte(strings.Repeat(unit, 5000)), nil); err == nil {
			t.Errorf("accepted %q without end", unit)
		}
	}
	var b strings.Builder
	for i := range 500 {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	if _, err := Parse([]byte(b.String()), nil); err == nil {
		t.Error("accepted 500 nested blocks")
	}
}
