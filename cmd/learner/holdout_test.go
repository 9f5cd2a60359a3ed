package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/panlearn/panlearn/internal/run/fit"
	"github.com/panlearn/panlearn/learner/task"
)

// pairs is a task of people who have two rows each.
const pairs = `
version: 1
name: pairs
events: {format: csv, header: true}
intercept: 0
features:
  columns:
    - {column: a, kind: numeric, min: -1, max: 1}
    - {column: b, kind: numeric, min: -1, max: 1}
    - {column: c, kind: numeric, min: -1, max: 1}
label: {column: y, min: -1, max: 1}
model: {loss: squared, radius: 1, clip_norm: 1}
privacy: {epsilon: 1, delta: 1e-6, unit: user}
user: {column: who, items: 2}
`

// neighbours writes two files that differ in one person, who has one row in the first and two in the second.
// Everybody behind that person has the rows (1, 0, 0, v) and (1, 0, 0, -v), of which a mean gradient at zero is zero.
func neighbours(t *testing.T) (declaration string, files [2]string) {
	t.Helper()
	dir := t.TempDir()
	declaration = filepath.Join(dir, "pairs.yaml")
	if err := os.WriteFile(declaration, []byte(pairs), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range files {
		rows := "who,a,b,c,y\n" + strings.Repeat("first,0,0,1,0\n", i+1)
		for k := range 400 {
			v := 0.8 + 0.1*float64(k%2)
			rows += fmt.Sprintf("p%d,1,0,0,%v\np%d,1,0,0,%v\n", k, v, k, -v)
		}
		files[i] = filepath.Join(dir, fmt.Sprint(i), "rows.csv")
		if err := os.Mkdir(filepath.Dir(files[i]), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files[i], []byte(rows), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return declaration, files
}

// A learned is the part of the JSON output of learner fit that the tests read.
type learned struct {
	People    int
	TestError *float64 `json:"test_error"`
	NoiseStd  float64  `json:"noise_std"`
}

// learnedFrom runs learner fit with --holdout 2 and returns the first weight of its model and what it printed.
func learnedFrom(t *testing.T, declaration, data string, args ...string) (weight float64, report learned) {
	t.Helper()
	c, model, out := newFit(), filepath.Join(t.TempDir(), "model.json"), new(bytes.Buffer)
	c.SetArgs(append([]string{"-f", declaration, "--data", data, "--holdout", "2", "-o", model, "--json",
		"--state", filepath.Join(t.TempDir(), "state")}, args...))
	c.SetOut(out)
	c.SetErr(io.Discard)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("fit of %s %v: %v", data, args, err)
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(model)
	var m struct{ Weights []float64 }
	if err == nil {
		err = json.Unmarshal(doc, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m.Weights[0], report
}

// TestHoldoutMovesNobody: how many rows one person has moves nobody else between the rows to learn from and those to
// test on, whichever the method. Rows that are held out by their places would give each of the 400 people one label
// in the one file, and the other label in the other: a weight of some -.66 in one, and .66 in the other. Where
// whole people are held out, the weight is noise alone, with a standard deviation of .0679 (73,200 fair trials a
// coordinate), and exceeds .45 with probability below 4e-11.
func TestHoldoutMovesNobody(t *testing.T) {
	declaration, files := neighbours(t)
	var reports [2]learned
	for i, data := range files {
		weight, report := learnedFrom(t, declaration, data, "--algorithm", "output")
		if reports[i] = report; report.NoiseStd > 0.12 || math.Abs(weight) > 0.45 {
			t.Errorf("file %d: the weight is %v, its noise %v", i, weight, report.NoiseStd)
		}
		if report.People < 160 || report.People > 240 || report.TestError == nil {
			t.Errorf("file %d: learned from %d of 401 people", i, report.People)
		}
		if _, pipeline := learnedFrom(t, declaration, data); pipeline.People != report.People {
			t.Errorf("file %d: the pipeline learned from %d people, output from %d", i, pipeline.People, report.People)
		}
	}
	if reports[0].People != reports[1].People {
		t.Errorf("%d and %d people are learned from", reports[0].People, reports[1].People)
	}
}

// rolesIn returns the number of rows of each person to learn from, by the pipeline's reader and by that of methods of
// one process and simulations.
func rolesIn(t *testing.T, declaration, data string) (pipeline, memory map[string]int) {
	t.Helper()
	spec, err := task.LoadTogether(declaration, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := fitConfig{task: taskFlags{path: declaration}, data: data, holdout: 2}
	_, s, err := f.read(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	names, err := s.Users()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := fit.Open(fit.Data{Path: data, Holdout: 2, Rows: len(s.Train)}, spec.Spec)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	pipeline, memory = map[string]int{}, map[string]int{}
	for row, err := range rows.All() {
		if err != nil {
			t.Fatal(err)
		}
		pipeline[row.User]++
	}
	for _, name := range names {
		memory[name]++
	}
	return pipeline, memory
}

// TestRolesOfPeople: a person's rows have one role, the same for the pipeline and for methods in memory, and nobody's
// depends on how many rows the first person has.
func TestRolesOfPeople(t *testing.T) {
	declaration, files := neighbours(t)
	var all [2]map[string]int
	for i, data := range files {
		pipeline, memory := rolesIn(t, declaration, data)
		if !maps.Equal(pipeline, memory) {
			t.Errorf("file %d: the pipeline and methods in memory learn from others", i)
		}
		for name, rows := range pipeline {
			if name != "first" && rows != 2 {
				t.Errorf("file %d: %s is there to learn from with %d of 2 rows", i, name, rows)
			}
		}
		all[i] = pipeline
	}
	if !slices.Equal(slices.Sorted(maps.Keys(all[0])), slices.Sorted(maps.Keys(all[1]))) {
		t.Error("the first person's rows move others")
	}
}

// TestHoldoutOfFew: where everybody has one role there is nothing to learn from, or to test on, and the refusal says
// so. Names alone decide.
func TestHoldoutOfFew(t *testing.T) {
	declaration, _ := neighbours(t)
	data := filepath.Join(t.TempDir(), "one.csv")
	if err := os.WriteFile(data, []byte("who,a,b,c,y\nx,0,0,1,0\nx,0,0,1,1\nx,1,0,0,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, holdout := range []uint{2, 1000} {
		f := fitConfig{task: taskFlags{path: declaration}, data: data, holdout: holdout}
		want := fmt.Sprintf("--holdout %d: holds out ", holdout)
		if _, _, err := f.read(io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("one person, --holdout %d: %v", holdout, err)
		}
	}
}

// TestNeighboursDifferInOnePerson takes random files, and files in which one person has other rows: more, fewer, or
// some that do not fit. A fit makes the same units in the same order from both, except that person's units. What it
// plans for and what the folder keeps are the same.
func TestNeighboursDifferInOnePerson(t *testing.T) {
	declaration, _ := neighbours(t)
	rng := rand.New(rand.NewPCG(7, 8))
	row := func(person int) string {
		if person < 0 {
			return fmt.Sprintf(",%v,0,0,0.5\n", rng.Float64())
		}
		return fmt.Sprintf("p%d,%v,%v,0,%v\n", person, rng.Float64(), rng.Float64(), 2*rng.Float64()-1)
	}
	read := func(rows []string) (*fitConfig, task.Together) {
		data := filepath.Join(t.TempDir(), "rows.csv")
		if err := os.WriteFile(data, []byte("who,a,b,c,y\n"+strings.Join(rows, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		f := &fitConfig{task: taskFlags{path: declaration}, data: data, holdout: 3}
		spec, _, err := f.read(io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return f, spec
	}
	for range 20 {
		const people, other = 30, 11
		var all []int // of whom the rows are, -1: of nobody
		for person := range people {
			all = append(all, person)
		}
		for range 60 {
			at := rng.IntN(len(all) + 1)
			all = slices.Insert(all, at, max(-1, rng.IntN(people+2)-2))
		}
		var rows, changed []string
		met := false
		for _, person := range all {
			one := row(person)
			rows = append(rows, one)
			switch {
			case person != other:
				changed = append(changed, one)
			case !met || rng.IntN(2) == 0: // the place of a person's first row does not change
				changed = append(changed, "p11,nothing\n")
			}
			for met = met || person == other; met && rng.IntN(4) == 0; {
				changed = append(changed, row(other))
			}
		}
		f, spec := read(rows)
		g, neighbour := read(changed)
		differ := 0
		for i := range min(len(f.units), len(g.units)) {
			if !reflect.DeepEqual(f.units[i], g.units[i]) {
				differ++
			}
		}
		if f.people != g.people || len(f.units) != len(g.units) || differ > 1 || spec.Silo.Units != neighbour.Silo.Units {
			t.Errorf("%d and %d people, planned for %d and %d, %d of them differ", f.people, g.people,
				spec.Silo.Units, neighbour.Silo.Units, differ)
		}
	}
}

// TestDataThatChangeBeforeTheEnd: figures of a fit are of the data that were learned from: as many rows of as many
// people, or there are none.
func TestDataThatChangeBeforeTheEnd(t *testing.T) {
	declaration, _ := neighbours(t)
	data := filepath.Join(t.TempDir(), "rows.csv")
	f := &fitConfig{task: taskFlags{path: declaration}, data: data}
	write := func(who ...string) {
		rows := "who,a,b,c,y\n"
		for i, one := range who {
			rows += fmt.Sprintf("%s,0,0,0,0.%d\n", one, i)
		}
		if err := os.WriteFile(data, []byte(rows), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "b", "c", "c")
	if _, _, err := f.read(io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := f.again(4); err != nil {
		t.Errorf("the same data: %v", err)
	}
	write("a", "b", "c", "d")
	if _, err := f.again(4); err == nil || !strings.Contains(err.Error(), "4 people to learn from, there were 3") {
		t.Errorf("another person: %v", err)
	}
	f.people = 3
	write("a", "b", "c")
	if _, err := f.again(4); err == nil || !strings.Contains(err.Error(), "3 rows to learn from, there were 4") {
		t.Errorf("a row less: %v", err)
	}
}
