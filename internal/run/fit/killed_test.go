package fit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
)

// asChild names the environment variable that makes TestChild a process to be killed. Its value holds the folder, the
// data, and whether it stops before it hands its release over.
const asChild = "FIT_CHILD"

const childRows = 200

// child returns the configuration of the fit that is killed.
func child(t *testing.T, dir, data string) Config {
	spec := declared(t, strings.Replace(ward, "logistic", "logistic, radius: 5", 1), childRows,
		"schedule.algorithm=output-phases")
	return Config{Spec: spec, StateDir: dir, Data: Data{Path: data, Rows: childRows}, Logger: runtest.Discard(),
		Once:  onceOf(t, spec, data),
		Begun: func(bool) {}, Done: func(statedir.View, bool) error { return nil }}
}

// TestChild is no test: TestKilled starts it in a process of its own.
func TestChild(t *testing.T) {
	where := strings.Split(os.Getenv(asChild), "|")
	if len(where) != 3 {
		return
	}
	c := child(t, where[0], where[1])
	of := c.Once.Fit
	c.Begun = func(bool) { fmt.Println("begun") }
	c.Once.Fit = func(ctx context.Context) (statedir.Release, error) {
		r, err := of(ctx)
		if fmt.Println("computed"); where[2] == "true" {
			<-ctx.Done() // until it is killed
		}
		return r, err
	}
	if err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// kill runs the child until it prints a word, and for a while more, and kills it.
func kill(t *testing.T, dir, data string, stops bool, word string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), asChild+"="+strings.Join([]string{dir, data, strconv.FormatBool(stops)}, "|"))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), word) { // or until it ends
	}
	<-time.After(after)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// charged returns the kinds of all entries; nil before the first.
func charged(t *testing.T, dir string) (all []string, view statedir.View) {
	t.Helper()
	store, err := pebblestore.Open(dir, pebblestore.Options{Logger: runtest.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for e, err := range store.Ledger(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Kind.String())
	}
	if view, err = statedir.Look(t.Context(), store); err != nil && !errors.Is(err, state.ErrEmpty) {
		t.Fatal(err)
	}
	return all, view
}

// TestKilled: a process that is killed with its release in memory has left a charge and nothing of a row; one that is
// killed at any moment has left that, or its release and what it cost, or a mark that it was writing. Started again it
// is charged once, whatever happened.
func TestKilled(t *testing.T) {
	data := table(t, childRows, nobody)
	dir := t.TempDir()
	kill(t, dir, data, true, "computed", 0)
	got, view := charged(t, dir)
	if pinned, _, err := readPin(dir); err != nil || pinned.Writing || !slices.Equal(got, []string{"reserved"}) ||
		view.Release.Phase != 0 {
		t.Fatalf("killed with its release in memory: the ledger has %v, the folder %+v: %v", got, view.Release, err)
	}
	looksFor(t, dir)
	if err := Run(t.Context(), child(t, dir, data)); err != nil {
		t.Fatal(err)
	}
	if got, view := charged(t, dir); !slices.Equal(got, []string{"reserved", "spent"}) || view.Release.Phase == 0 {
		t.Errorf("went on: the ledger has %v", got)
	}
	seed := uint64(1)
	if longtest.On() {
		seed = rand.Uint64()
	}
	random, lost := rand.New(rand.NewPCG(seed, 1)), 0
	for i := range 6 {
		dir := filepath.Join(t.TempDir(), fmt.Sprint(i))
		for range 2 {
			word := []string{"begun", "computed"}[random.IntN(2)]
			kill(t, dir, data, false, word, time.Duration(random.IntN(20_000))*time.Microsecond)
		}
		err := Run(t.Context(), child(t, dir, data))
		got, view := charged(t, dir)
		var gone *LostError
		switch {
		case errors.As(err, &gone):
			if lost++; !slices.Equal(got, []string{"reserved", "void"}) || view.Release.Phase != 0 {
				t.Errorf("seed %d, folder %d: lost, and the ledger has %v", seed, i, got)
			}
		case err != nil && !errors.As(err, new(*SpentError)):
			t.Errorf("seed %d, folder %d: %v", seed, i, err)
		case !slices.Equal(got, []string{"reserved", "spent"}) || view.Release.Phase == 0 ||
			view.Checkpoint.Ledger.Spent().Epsilon > 2:
			t.Errorf("seed %d, folder %d: the ledger has %v, the release is %+v", seed, i, got, view.Release)
		}
		looksFor(t, dir)
	}
	t.Logf("seed %d: %d of 6 were killed while they wrote", seed, lost)
}
