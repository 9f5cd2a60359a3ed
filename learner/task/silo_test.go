package task

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

const hospitals = `
version: 1
name: demo
events: {format: libsvm}
features: {vector: {dimension: 10, min: 0, max: 1, max_nonzeros: 3}}
label: {positive: ["1"], negative: ["0"]}
model: {loss: logistic, radius: 5}
privacy: {epsilon: 1, delta: 1e-6, trust: local}
silo: {count: 20, units: 1600}
schedule: {plan: proved}
`

var people = strings.NewReplacer("[age,", "[who, age,", "delta: 1e-6}",
	"delta: 1e-6, unit: user}\nuser: {column: who, items: 16}").Replace(plain)

func TestDefaultsOfSilos(t *testing.T) {
	s := mustParse(t, hospitals)
	if o := *s.Silo; o.Reports != 20 || o.Least != 1067 || s.Schedule.Users != 32000 || s.Schedule.MinimumCohort != 10 ||
		s.Privacy.HonestFraction.Fraction != accounting.One {
		t.Errorf("local: %+v, %+v, honest %s", o, s.Schedule, s.Privacy.HonestFraction)
	}
	for trust, honest := range map[string]string{"shuffle": "0.95", "shuffle+pan": "0.95", "pan": "1"} {
		s := mustParse(t, hospitals, "privacy.trust="+trust)
		if o := *s.Silo; o.Least != 1600 || s.Schedule.MinimumCohort != 0 || s.Privacy.HonestFraction.String() != honest {
			t.Errorf("%s: %+v, %+v, honest %s", trust, o, s.Schedule, s.Privacy.HonestFraction)
		}
	}
	if s := mustParse(t, hospitals, "silo.reports=3",
		"privacy.trust=shuffle"); s.Privacy.HonestFraction.String() != "2/3" {
		t.Errorf("honest share of three silos: %s", s.Privacy.HonestFraction)
	}
	if s := mustParse(t, hospitals, "schedule.users=32000", "silo.reports=7",
		"schedule.interactive=true"); s.Schedule.MinimumCohort != 4 {
		t.Errorf("minimum of seven: %+v", s.Schedule)
	}
}

func TestPeople(t *testing.T) {
	s := mustParse(t, people, "user.wait=24h")
	if !s.Privacy.ByUser() || s.UserRadius() != 0.25 || time.Duration(s.User.Wait) != 24*time.Hour {
		t.Errorf("%+v, radius %v", s.User, s.UserRadius())
	}
	if m, err := s.Compile(); err != nil || m.Schema().User != "who" || m.Unlabelled().Schema().User != "" {
		t.Errorf("%v: readers want the column of people, but for data that are only scored", err)
	}
	if s := mustParse(t, people, "user.radius=0.1"); s.UserRadius() != 0.1 {
		t.Errorf("radius %v, want 0.1", s.UserRadius())
	}
	if s := mustParse(t, plain); s.Privacy.ByUser() || s.UserRadius() != 0 {
		t.Error("single events have a radius of their own")
	}
	both := mustParse(t, people, "silo.count=5", "silo.units=200", "privacy.trust=local") // patients of a hospital
	form, err := both.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseCanonical(form); err != nil {
		t.Error(err)
	}
}

// TestBlocksLeaveOldDeclarationsAlone: unit event, written out, is the same declaration as no unit, and a file
// without silos and people has the keys that it had.
func TestBlocksLeaveOldDeclarationsAlone(t *testing.T) {
	old, err := mustParse(t, plain).Canonical()
	if err != nil {
		t.Fatal(err)
	}
	said, err := mustParse(t, plain, "privacy.unit=event").Canonical()
	if err != nil || string(said) != string(old) {
		t.Errorf("unit event is another declaration: %s, %v", said, err)
	}
	for _, key := range []string{"silo", "user", "unit"} {
		if strings.Contains(string(old), `"`+key+`"`) {
			t.Errorf("%s in %s", key, old)
		}
	}
}

func TestBlockRefusals(t *testing.T) {
	for _, c := range []struct{ file, set, path, want string }{
		{hospitals, "privacy.honest_fraction=0.9", "privacy.honest_fraction",
			"1 under trust local: nobody's noise but the report's own is relied upon"},
		{hospitals, "privacy.coin=any", "privacy.coin", "fair"},
		{strings.Replace(plain, "privacy: {", "privacy: {trust: local, ", 1), "privacy.profile=paper", "privacy.profile",
			"numeric under trust local without silo"},
		{hospitals, "silo.count=0", "silo.count", "a whole number from 1"},
		{hospitals, "silo.units=0", "silo.units", "a whole number from 1"},
		{hospitals, "silo.units=1099511627775", "silo.units", "at most"},
		{hospitals, "silo.reports=21", "silo.reports", "silo.count (20)"},
		{hospitals, "silo.least=1601", "silo.least", "silo.units (1600)"},
		{hospitals, "silo.least=-1", "silo.least", "silo.units (1600)"},
		{strings.Replace(hospitals, "local", "shuffle", 1), "silo.least=1000", "silo.least", "only under local"},
		{strings.Replace(hospitals, "local", "shuffle", 1), "silo.count=1", "silo.reports", "trust local needs nobody's"},
		{hospitals, "silo.sample=100", "silo.sample", "not yet"},
		{hospitals, "silo.spread=-1", "silo.spread", "> 0"},
		{hospitals, "schedule.users=20", "schedule.users", "32000"},
		{hospitals, "schedule.cohort=20", "schedule.cohort", "silo.reports"},
		{hospitals, "schedule.first_cohort=5", "schedule.first_cohort", "silo.reports"},
		{hospitals, "schedule.minimum_cohort=21", "schedule.minimum_cohort", "silo.reports (20)"},
		{hospitals, "schedule.continuous=constant", "schedule.continuous", "schedule.plan practical has adaptive"},
		{strings.Replace(hospitals, "plan: proved", "interactive: true", 1), "schedule.algorithm=pagd", "schedule.algorithm",
			"is for: apgd"},
		{strings.NewReplacer("radius: 5", "radius: 5, ridge: 0.1", "plan: proved", "interactive: true").Replace(hospitals),
			"schedule.algorithm=pgd-restarts", "schedule.algorithm",
			"nobody may answer two of its phases"},
		{plain, "privacy.unit=user", "user.column", "names the person"},
		{plain, "privacy.unit=person", "privacy.unit", "user"},
		{strings.Replace(hospitals, "trust: local", "unit: user", 1), "user.column=who", "user.column", "named columns"},
		{people, "privacy.unit=event", "user", "single events"},
		{people, "user.column=age", "user.column", "neither a feature"},
		{people, "user.column=y", "user.column", "nor the label"},
		{people, "events.key=who", "user.column", "nor events.key"},
		{people, "user.column=whom", "user.column", "events.columns"},
		{people, "user.items=0", "user.items", "from 1"},
		{people, "user.radius=1.5", "user.radius", "at most 1"},
		{people, "user.radius=-1", "user.radius", "(0, 1]"},
		{people, "user.wait=-1s", "user.wait", "from 0"},
	} {
		_, err := Parse([]byte(c.file), []string{c.set})
		var field *FieldError
		if !errors.As(err, &field) || field.Path != c.path || !strings.Contains(field.Want, c.want) {
			t.Errorf("%s: got %v, want a refusal at %s with %q", c.set, err, c.path, c.want)
		}
	}
}
