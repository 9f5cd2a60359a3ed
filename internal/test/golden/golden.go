// Package golden is for documents that a test keeps equal to the code. With -update the test writes them.
package golden

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the documents that these tests check")

// File fails the test where a file is not want.
func File(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the code says: run this test with -update", path)
	}
}

// Section works like File, for the part of a document between two marks, which stay.
func Section(t *testing.T, path, begin, want, end string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has nothing between %q and %q", path, begin, end)
	}
	File(t, path, before+begin+want+end+after)
}

// Updating reports whether -update was given: a test that writes what it cannot compare, such as a picture, asks.
func Updating() bool { return *update }
