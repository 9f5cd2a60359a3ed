package fit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/state"
)

// TestPinOfAnotherVersion: a folder whose fit another version began is refused with both numbers and the way out, whatever
// else that version writes, and one whose pin is damaged is refused by the file's name.
func TestPinOfAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, pinFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{`{"version": 2}`, `{"version": 2, "data": {"paths": ["a", "b"]}, "told": 3}`} {
		write(text)
		var other *state.VersionError
		_, found, err := readPin(dir)
		if found || !errors.As(err, &other) || other.Got != 2 || other.Want != pinVersion ||
			!strings.Contains(err.Error(), "--state: fit.json was written by another version of panlearn") {
			t.Errorf("%s: %v, %v", text, found, err)
		}
	}
	write(`{"version": 1, "told": 3}`)
	var other *state.VersionError
	if _, found, err := readPin(dir); found || err == nil || errors.As(err, &other) || !strings.Contains(err.Error(), pinFile) {
		t.Errorf("damaged: %v, %v", found, err)
	}
}
