package fit

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run/statedir"
	"github.com/panlearn/panlearn/internal/test/runtest"
	"github.com/panlearn/panlearn/learner/service"
	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/state"
	"github.com/panlearn/panlearn/state/pebblestore"
	"github.com/panlearn/panlearn/stream"
	"github.com/panlearn/panlearn/stream/device/filestore"
	"github.com/panlearn/panlearn/stream/device/participation"
	"github.com/panlearn/panlearn/stream/manifest"
)

// Each row holds a secret: as a word that the declaration knows, and as a number.
const (
	secretWord   = "hepatitis-of-row"
	secretNumber = 53.718281828
)

const ward = `
version: 1
name: ward
events: {format: csv, header: true}
features:
  columns:
    - {column: age, kind: numeric, min: 0, max: 100}
    - {column: what, kind: categorical, vocabulary: [nothing, cold], unknown: drop}
label: {column: ill, positive: ["1"], negative: ["0"]}
model: {loss: logistic}
privacy: {epsilon: 2, delta: 1e-5, trust: pan}
schedule: {rounds: {max: 3}, cohort: 10}
`

// declared returns a task of one place in a file of its own.
func declared(t *testing.T, declaration string, units int, sets ...string) *task.Spec {
	t.Helper()
	path := filepath.Join(t.TempDir(), "task.yaml")
	if err := os.WriteFile(path, []byte(declaration), 0o600); err != nil {
		t.Fatal(err)
	}
	spec, err := task.LoadTogether(path, sets, units)
	if err != nil {
		t.Fatal(err)
	}
	return spec.Spec
}

// table writes n rows.
func table(t *testing.T, n int, person func(i int) string) string {
	t.Helper()
	rng, out := rand.New(rand.NewPCG(1, 2)), "who,age,what,ill\n"
	for i := range n {
		age, ill := 100*rng.Float64(), 0
		if rng.Float64() < age/100 {
			ill = 1
		}
		if i == n/2 {
			age = secretNumber
		}
		out += fmt.Sprintf("%s,%v,%s%d,%d\n", person(i), age, secretWord, i, ill)
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func nobody(int) string { return "" }

// fitted returns the configuration of a fit of rows, and the view in which it leaves its outcome.
func fitted(t *testing.T, spec *task.Spec, data string, rows int) (Config, *statedir.View) {
	view := new(statedir.View)
	return Config{Spec: spec, StateDir: t.TempDir(), Data: Data{Path: data, Rows: rows}, Logger: runtest.Discard(),
		Begun: func(bool) {},
		Done:  func(v statedir.View, _ bool) error { *view = v; return nil }}, view
}

// ledger returns the charges of the folder, and its view.
func ledger(t *testing.T, dir string) (entries []state.Entry, view statedir.View) {
	t.Helper()
	store, err := pebblestore.Open(dir, pebblestore.Options{Logger: runtest.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for e, err := range state.Charged(store.Ledger(t.Context())) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	if view, err = statedir.Look(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	return entries, view
}

// TestFit checks that a fit that is stopped twice goes on: every round is spent once, at the planned cost. What is on
// the disk meanwhile holds nothing of a row. Afterwards the folder takes no second fit, and before no other rows.
func TestFit(t *testing.T) {
	const rows = 400
	c, view := fitted(t, declared(t, ward, rows), table(t, rows, nobody), rows)
	for _, stop := range []stream.Round{1, 3} {
		ctx, cancel := context.WithCancel(t.Context())
		c.Watch = runtest.Stage(func(r stream.Round) {
			if looksFor(t, c.StateDir); r == stop {
				cancel()
			}
		})
		if err := Run(ctx, c); !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped in round %d: %v", stop, err)
		}
		cancel()
		for what, other := range map[string]func(*Config){
			"began with 400 rows":    func(c *Config) { c.Spec, c.Data.Rows = declared(t, ward, rows+1), rows+1 },
			"is of the rows of":      func(c *Config) { c.Data.Path += ".other" },
			"began with --holdout 0": func(c *Config) { c.Data.Holdout = 5 },
			"a task never changes":   func(c *Config) { c.Spec = declared(t, ward, rows, "privacy.epsilon=1") },
			"/rows.csv: go on":       func(c *Config) { c.Data.Format = "jsonl" },
		} {
			changed := c
			if other(&changed); !strings.Contains(fmt.Sprint(Run(t.Context(), changed)), what) {
				t.Errorf("a folder of something else is not refused with %q", what)
			}
		}
	}
	for _, part := range []string{"nats", "devices"} {
		away := filepath.Join(t.TempDir(), part)
		if err := os.Rename(filepath.Join(c.StateDir, part), away); err != nil {
			t.Fatal(err)
		}
		if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), part+" is gone") {
			t.Errorf("without %s: %v", part, err)
		}
		if err := os.Rename(away, filepath.Join(c.StateDir, part)); err != nil {
			t.Fatal(err)
		}
	}
	c.Watch = service.Observer{}
	told := c.Done
	c.Done = func(statedir.View, bool) error { return errors.New("nobody listens") }
	if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "nobody listens") {
		t.Fatalf("a fit whose model nobody took: %v", err)
	}
	c.Done = told
	if err := Run(t.Context(), c); err != nil || view.Task == nil {
		t.Fatalf("told again: %v", err)
	}
	entries, kept := ledger(t, c.StateDir)
	if planned := manifest.Planned(kept.Task.Plan); uint64(len(entries)) != planned || !kept.Checkpoint.Ended() ||
		kept.Checkpoint.Cursor.Round != planned {
		t.Errorf("%d rounds charged, ended %t after %d: planned %d", len(entries), kept.Checkpoint.Ended(),
			kept.Checkpoint.Cursor.Round, planned)
	}
	if drawn := draws(t, c); drawn.Rounds != uint32(len(entries)) || drawn.State != participation.Counted {
		t.Errorf("all rows are %v after %d draws in %d rounds", drawn.State, drawn.Rounds, len(entries))
	}
	for _, e := range entries {
		if e.Kind != state.Spent || e.Users != 1 {
			t.Errorf("round %d: %v, %d reports", e.Round, e.Kind, e.Users)
		}
	}
	if spent := kept.Checkpoint.Ledger.Spent(); spent.Epsilon != kept.Task.Plan.Epsilon || !(spent.Epsilon > 1.9 &&
		spent.Epsilon <= 2) || spent.Delta != 1e-5 {
		t.Errorf("spent %+v, planned epsilon %v of 2", spent, kept.Task.Plan.Epsilon)
	}
	if s, err := view.Snapshot(); err != nil || s.Privacy.Unit != "one row in all rounds, replaced by any other" ||
		s.Privacy.Units != rows {
		t.Errorf("the model says %+v: %v", s.Privacy, err)
	}
	var spent *SpentError
	if err := Run(t.Context(), c); !errors.As(err, &spent) || spent.Epsilon != kept.Task.Plan.Epsilon {
		t.Errorf("a second fit: %v", err)
	}
	looksFor(t, c.StateDir)
	if err := os.Remove(filepath.Join(c.StateDir, pinFile)); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "is of learner run") {
		t.Errorf("a folder without a pin: %v", err)
	}
}

// draws returns the client's record of its one report a round.
func draws(t *testing.T, c Config) participation.Record {
	t.Helper()
	store, err := filestore.Open(filestore.Path(filepath.Join(c.StateDir, "devices"), stream.Task(c.Spec.Name)))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	records, err := store.Read([]participation.Key{participation.EventKey("all rows of a silo")})
	if err != nil || len(records) != 1 {
		t.Fatalf("%d records: %v", len(records), err)
	}
	return records[0]
}

// looksFor fails where a file below dir holds a word or a number of a row.
func looksFor(t *testing.T, dir string) {
	t.Helper()
	if n, found := held(t, dir); n < 5 || found != "" {
		t.Errorf("%d files are on the disk, and %q holds something of a row", n, found)
	}
}

func held(t *testing.T, dir string) (files int, found string) {
	t.Helper()
	bits := math.Float64bits(secretNumber)
	all := [][]byte{[]byte(secretWord), []byte("53.71828"), binary.BigEndian.AppendUint64(nil, bits),
		binary.LittleEndian.AppendUint64(nil, bits)}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // gone meanwhile
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		files++
		for _, what := range all {
			if bytes.Contains(data, what) {
				found = path
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return files, found
}

// TestLookingFinds: the search of TestFit sees what it is for.
func TestLookingFinds(t *testing.T) {
	for _, what := range [][]byte{[]byte("x" + secretWord + "1"), binary.LittleEndian.AppendUint64([]byte{1},
		math.Float64bits(secretNumber))} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a"), what, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, found := held(t, dir); found == "" {
			t.Errorf("%x is not found", what)
		}
	}
}

// TestFitOfPeople: all rows of a person are one unit, and whole people are held out.
func TestFitOfPeople(t *testing.T) {
	const rows, people, kept = 300, 60, 49
	declaration := strings.Replace(ward, "trust: pan}", "unit: user}\nuser: {column: who, items: 4, wait: 1s}", 1)
	c, _ := fitted(t, declared(t, declaration, people),
		table(t, rows, func(i int) string { return fmt.Sprint("p", i%people) }), 5*kept)
	c.Data.Holdout = 5
	// By their names 11 people are held out: 49 are left, with 5 rows each.
	if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "49: want at least 60") {
		t.Errorf("fewer people than planned for: %v", err)
	}
	c, view := fitted(t, declared(t, declaration, kept), c.Data.Path, 5*kept)
	c.Data.Holdout = 5
	if err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s, err := view.Snapshot()
	if err != nil || s.Privacy.Unit != "all rows of one person in all rounds, replaced by any others" ||
		s.Privacy.Units != kept {
		t.Errorf("the model says %+v: %v", s.Privacy, err)
	}
}

// TestPartsComeFirst: a process that dies as soon as its state is committed leaves a folder in which the fit goes on:
// no part of it looks removed.
func TestPartsComeFirst(t *testing.T) {
	const rows = 100
	c, _ := fitted(t, declared(t, ward, rows), table(t, rows, nobody), rows)
	c.Begun = func(bool) {
		for _, part := range parts {
			if _, err := os.Stat(filepath.Join(c.StateDir, part)); err != nil {
				t.Errorf("before anything is learned: %v", err)
			}
		}
	}
	if err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// TestNumbersOfRowsAreNotKept checks that two folders of people, one of whom has a row more in the second, keep the
// same description of their data; a fit goes on whatever number of rows there are meanwhile, and is refused with
// other people.
func TestNumbersOfRowsAreNotKept(t *testing.T) {
	const people = 48
	declaration := strings.Replace(ward, "trust: pan}", "unit: user}\nuser: {column: who, items: 4, wait: 1s}", 1)
	spec, path := declared(t, declaration, people), filepath.Join(t.TempDir(), "rows.csv")
	write := func(rows int) {
		if err := os.Rename(table(t, rows, func(i int) string { return fmt.Sprint("p", i%people) }), path); err != nil {
			t.Fatal(err)
		}
	}
	var kept [2][]byte
	var folder Config
	for more := range kept {
		rows := 4*people - more
		write(rows)
		c, _ := fitted(t, spec, path, rows)
		c.Data.People = people
		ctx, cancel := context.WithCancel(t.Context())
		c.Watch = runtest.Stage(func(stream.Round) { cancel() })
		if err := Run(ctx, c); !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped in the first round: %v", err)
		}
		cancel()
		var err error
		if kept[more], err = os.ReadFile(filepath.Join(c.StateDir, pinFile)); err != nil {
			t.Fatal(err)
		}
		folder, folder.Data.Rows = c, c.Data.Rows+1
	}
	if !bytes.Equal(kept[0], kept[1]) {
		t.Errorf("the folders tell who has a row more: %s and %s", kept[0], kept[1])
	}
	folder.Watch = service.Observer{}
	others := folder
	if others.Data.People++; !strings.Contains(fmt.Sprint(Run(t.Context(), others)),
		"began with 48 people to learn from, now there are 49") {
		t.Error("other people are not refused")
	}
	write(folder.Data.Rows)
	p, _, err := readPin(folder.StateDir)
	if p.People, p.Rows = 0, folder.Data.Rows; err != nil || !strings.Contains(fmt.Sprint(p.differs(folder.Data)),
		"an earlier version") {
		t.Errorf("a folder that counted rows is not refused: %v", err)
	}
	if err := Run(t.Context(), folder); err != nil {
		t.Errorf("a person has a row more: %v", err)
	}
}

// TestRowsThatChange: data that are not those that were counted are refused before anything is drawn.
func TestRowsThatChange(t *testing.T) {
	const rows = 300
	c, _ := fitted(t, declared(t, ward, rows), table(t, rows-1, nobody), rows)
	if err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "the data have changed: 299 rows") {
		t.Errorf("a row is missing: %v", err)
	}
	_, view := ledger(t, c.StateDir)
	if view.Checkpoint.Cursor.Round != 0 {
		t.Errorf("%d rounds were learned from", view.Checkpoint.Cursor.Round)
	}
}
