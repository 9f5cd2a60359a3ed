package task

import (
	"testing"
)

// FuzzParse: a task that is parsed without error is complete: it validates, compiles, and survives the
// canonical form.
func FuzzParse(f *testing.F) {
	for _, file := range samples {
		f.Add([]byte(file), "schedule.users=10")
		f.Add([]byte(file), "features.columns.0.min=-1")
	}
	f.Add([]byte("a: &x [1, *x]\nb: !!str 3\n<<: {c: |\n  text\n}"), "a.0=[1,2]")
	f.Add([]byte("? [a]\n: - - b\n"), "=")
	f.Fuzz(func(t *testing.T, data []byte, set string) {
		s, err := Parse(data, []string{set})
		if err != nil {
			_ = err.Error()
			return
		}
		if _, err := s.Compile(); err != nil {
			t.Fatalf("a parsed task does not compile: %v", err)
		}
		requireCanonical(t, s)
	})
}

// FuzzParseCanonical: ParseCanonical accepts canonical bytes only, so no two encodings share a declaration.
func FuzzParseCanonical(f *testing.F) {
	for _, file := range samples {
		b, err := mustParse(f, file).Canonical()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseCanonical(data)
		if err != nil {
			return
		}
		b, err := s.Canonical()
		if err != nil || string(b) != string(data) {
			t.Fatalf("accepted %q, encodes as %q, %v", data, b, err)
		}
	})
}
