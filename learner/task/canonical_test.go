package task

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// requireCanonical checks ParseCanonical(Canonical(s)) = s, and the same once more in bytes.
func requireCanonical(t rapid.TB, s *Spec) {
	t.Helper()
	b, err := s.Canonical()
	if err != nil {
		t.Fatalf("canonical form of a valid task: %v", err)
	}
	again, err := ParseCanonical(b)
	if err == nil {
		again, err = again.WithPublic(s.Features.Public.Data())
	}
	if err != nil {
		t.Fatalf("decode %s: %v", b, err)
	}
	if !reflect.DeepEqual(s, again) {
		t.Fatalf("canonical form changed the task:\n%+v\n%+v", s, again)
	}
	c, err := again.Canonical()
	if err != nil || !bytes.Equal(b, c) {
		t.Fatalf("canonical form is not stable: %v", err)
	}
}

func TestCanonicalIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { requireCanonical(t, drawSpec(t)) })
}

// TestCanonicalIsOfTheDeclaration: one declaration in two spellings has one canonical form, and every field
// that is changed changes it.
func TestCanonicalIsOfTheDeclaration(t *testing.T) {
	encode := func(s *Spec) string {
		b, err := s.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	base := encode(mustParse(t, plain))
	same := encode(mustParse(t, "# a comment\n"+plain, "intercept=1.0", "model.clip_norm=1e0", "privacy.trust=shuffle",
		"events.skip_lines=0"))
	if base != same {
		t.Errorf("two spellings, two forms:\n%s\n%s", base, same)
	}
	seen := map[string]string{base: "nothing"}
	for _, set := range []string{
		"name=other", "intercept=0", "norm_bound=1", "events.max_line=100", "features.columns.0.max=101",
		"label.positive.0=2",
		"model.radius=6", "privacy.seal=none", "privacy.honest_fraction=0.9", "schedule.deadline=61s",
		"schedule.rounds.max=3",
	} {
		form := encode(mustParse(t, plain, set))
		if other, ok := seen[form]; ok {
			t.Errorf("%s and %s have one canonical form", set, other)
		}
		seen[form] = set
	}
}

// TestCanonicalTellsFeaturesApart: every key of the features and of the model that shapes the vectors of
// devices changes the canonical form.
func TestCanonicalTellsFeaturesApart(t *testing.T) {
	seen := make(map[string]string)
	for _, set := range []string{
		"version=1", "features.columns.0.hidden=true", "features.columns.1.mean=2999", "features.columns.1.std=999",
		"features.columns.1.clip=2",
		"features.columns.2.edges.0=24", "features.columns.3.unknown=other", "features.columns.4.buckets=5",
		"features.crosses.0.buckets=9",
		"features.crosses.0.columns=[url, job]", "features.polynomial.degree=3", "features.polynomial.columns=[pay, age]",
		"features.fourier.dimension=7", "features.fourier.gamma=0.6", "features.fourier.seed=2", "model.set=l1",
		"model.ridge=0.1",
		"model.class_weights=[1, 2]", "model.label_noise=0.1", "model.loss=hinge", "schedule.interactive=true",
		"schedule.continuous=epochs",
	} {
		b, err := mustParse(t, derived, set).Canonical()
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[string(b)]; ok {
			t.Errorf("%s and %s have one canonical form", set, other)
		}
		seen[string(b)] = set
	}
}

func TestParseCanonicalRefusesOtherSpellings(t *testing.T) {
	b, err := mustParse(t, plain).Canonical()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{
		{`{"version":1`, `{ "version":1`},
		{`"intercept":1`, `"intercept":1.0`},
		{`"name":"demo"`, `"name":"\u0064emo"`},
		{`"name":"demo"`, `"name":"demo","name":"demo"`},
		{`"name":"demo"`, `"Name":"demo"`},
		{`"name":"demo"`, `"name":"demo","more":1`},
		{`"trust":"shuffle"`, `"trust":""`},
		{`"epsilon":1`, `"epsilon":0`},
	} {
		changed := bytes.Replace(b, []byte(c[0]), []byte(c[1]), 1)
		if bytes.Equal(b, changed) {
			t.Fatalf("%s is not in %s", c[0], b)
		}
		if _, err := ParseCanonical(changed); err == nil {
			t.Errorf("accepted %s in place of %s", c[1], c[0])
		}
	}
	if _, err := ParseCanonical(append(b, ' ')); err == nil {
		t.Error("accepted a byte after the end")
	}
}

// TestParseDeclaration: a declaration inside another document survives indentation and escaping.
func TestParseDeclaration(t *testing.T) {
	s := mustParse(t, plain, "label.positive.0=>50K")
	b, err := s.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	carried, err := json.MarshalIndent(json.RawMessage(b), "", "  ")
	if err != nil || bytes.Equal(carried, b) {
		t.Fatalf("carried unchanged: %v", err)
	}
	again, err := ParseDeclaration(carried)
	if err != nil || !reflect.DeepEqual(s, again) {
		t.Errorf("got %+v, %v", again, err)
	}
	if _, err := ParseDeclaration(bytes.Replace(carried, []byte("epsilon"), []byte("epsilom"), 1)); err == nil {
		t.Error("accepted an unknown key")
	}
	if _, err := ParseDeclaration(nil); err == nil {
		t.Error("accepted nothing")
	}
}

func TestReadAs(t *testing.T) {
	for _, c := range []struct {
		file   string
		format Format
		ok     bool
	}{
		{plain, CSV, true}, {plain, JSONL, true}, {plain, LIBSVM, false}, {plain, IDX, false}, {plain, "xml", false},
		{regression, CSV, true}, {sparse, IDX, true}, {sparse, CSV, false}, {sparse, LIBSVM, true},
	} {
		s := mustParse(t, c.file)
		before, err := s.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		other, err := s.ReadAs(c.format)
		if (err == nil) != c.ok {
			t.Errorf("%s as %s: %v", s.Events.Format, c.format, err)
		}
		if err == nil && (other.Events.Format != c.format || !slices.Equal(mustCompile(t, s).Names(),
			mustCompile(t, other).Names())) {
			t.Errorf("%s as %s: %+v", s.Events.Format, c.format, other.Events)
		}
		if after, err := s.Canonical(); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s as %s changed the original", s.Events.Format, c.format)
		}
	}
}
