package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/panlearn/panlearn/internal/test/longtest"
)

// dataDir returns the folder of the public data sets, and whether they are there.
func dataDir() (string, bool) {
	dir := os.Getenv("PANLEARN_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	_, err = os.Stat(filepath.Join(dir, "a9a", "a9a.gz"))
	return dir, err == nil
}

// Figures on public data sets: each script asserts those that the documentation promises, with room for the noise.
func TestDataSets(t *testing.T) {
	if dir, ok := dataDir(); !ok {
		notRun(t, "training on Adult, bike sharing, a9a and MNIST: no data in "+dir+"; PANLEARN_DATA names the folder")
	}
	testscript.Run(t, params(t, "sets", 10*time.Minute))
}

func TestDataSetsDeep(t *testing.T) {
	if _, ok := dataDir(); !ok {
		notRun(t, "repeated training on public data sets: no data")
	}
	if !longtest.Run(t, "five runs of a9a, a9a and Adult through processes, MNIST") {
		t.SkipNow()
	}
	testscript.Run(t, params(t, "deep", 30*time.Minute))
}

// notRun ends a test that cannot run, where nobody can overlook it.
func notRun(t *testing.T, what string) {
	t.Helper()
	_, _ = os.Stdout.WriteString("NOT RUN: " + what + "\n")
	t.Skip("NOT RUN: " + what)
}
