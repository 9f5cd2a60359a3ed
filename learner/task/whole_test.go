package task

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/panlearn/panlearn/internal/test/longtest"
	"github.com/panlearn/panlearn/internal/test/nodejs"
)

// leaf finds a key with a value that is no mapping, and the comma behind it.
var leaf = regexp.MustCompile(`"(\w+)":("(?:[^"\\]|\\.)*"|-?[0-9][0-9.e+-]*|true|false|\[[^\[\]{}]*\])(,?)`)

// others are values that stand where they may not, or nearly.
var others = strings.Fields(`0 1 2 -1 0.5 1e-7 1e+100 1e+101 3 64 65 1048576 1048577 4294967296 true false null "" "x" "*" "\u2028" "\ud800" [] [1] ["x"] [0,1]
	["x","x"] "raw" "unit" "symmetric" "standard" "log" "numeric" "indicator" "categorical" "hashed" "bucketed" "hats" "text" "onehot-group"
	"invalid" "drop" "other" "logistic" "softmax" "squared" "quantile" "huber" "poisson" "hinge" "ball" "box" "l1" "simplex" "shuffle" "pan" "local"
	"any" "paper" "none" "hpke" "user" "pass" "practical" "proved" "auto" "psgd" "pagd" "pgd" "apgd-restarts" "pagd-envelope" "prox" "adaptive" "epochs"
	"constant" "1h0m0s" "60s" "1m0s" "0s" "1.5s" "500ms" "721h0m0s" "2/3" "0.90" "0.5" "1" "csv" "jsonl" "idx" "parquet" "," ";" "mlkem768x25519"`)

// changed returns a declaration with one or two values that are otherwise, or left out, or that another key has.
func changed(rng *rand.Rand, text string) string {
	for range 1 + rng.IntN(2) {
		all := leaf.FindAllStringSubmatchIndex(text, -1)
		at := all[rng.IntN(len(all))]
		from := all[rng.IntN(len(all))]
		value := others[rng.IntN(len(others))]
		switch rng.IntN(6) {
		case 0: // as another key has it
			value = text[from[4]:from[5]]
		case 1: // left out
			text = strings.Replace(text[:at[0]]+text[at[1]:], ",}", "}", 1)
			continue
		case 2: // beside another key
			with := text[from[2]-1:from[3]+1] + ":" + value + ","
			text = text[:at[0]] + with + text[at[0]:]
			continue
		}
		text = text[:at[4]] + value + text[at[5]:]
	}
	return text
}

// TestDeclarationsInTypeScript: the device in TypeScript that checks declarations whole takes those that ParseCanonical
// takes, of random tasks and of shipped ones, as they are and changed in a value or two.
func TestDeclarationsInTypeScript(t *testing.T) {
	tasks, changes := 80, 60
	if longtest.Run(t, "300,000 declarations instead of 5,000") {
		tasks, changes = 2000, 150
	}
	draw := rapid.Custom(drawSpec)
	var declarations []string
	add := func(s *Spec) {
		text, err := s.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		declarations = append(declarations, string(text))
	}
	for i := range tasks {
		add(draw.Example(i + 1))
	}
	files, err := filepath.Glob("../../deploy/tasks/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, f := range files {
		for _, sets := range [][]string{nil, {"grants=pass", "issuer_key=" + IssuerKeyText(make([]byte, IssuerKeySize))},
			{"schedule.continuous=adaptive"},
			{"privacy.unit=user", "user={column: who, items: 4, wait: 90s}"}} {
			if _, err := os.Stat(f); err != nil {
				t.Fatal(err)
			}
			if s, err := Load(f, sets); err == nil && s.Silo == nil {
				add(s)
			}
		}
	}
	type question struct {
		Whole string `json:"whole"`
	}
	type answer struct{ Refused string }
	rng := rand.New(rand.NewPCG(31, 1))
	var asked []question
	for _, text := range declarations {
		asked = append(asked, question{text})
		for range changes {
			asked = append(asked, question{changed(rng, text)})
		}
	}
	taken, wrong := 0, 0
	for i, got := range nodejs.Answers[question, answer](t, asked) {
		s, err := ParseCanonical([]byte(asked[i].Whole))
		if err == nil && (s.Silo != nil || s.Privacy.Trust.HasOperators()) { // refused by name elsewhere
			continue
		}
		if err == nil {
			taken++
		}
		var field *FieldError
		if errors.As(err, &field) && field.Path == "norm_bound" && got.Refused == "" {
			var near Spec // another program may compute other last digits
			if json.Unmarshal([]byte(asked[i].Whole), &near) == nil && near.NormBound <= near.Features.declaredBound()*(1+1e-12) {
				continue
			}
		}
		if (err == nil) != (got.Refused == "") {
			t.Errorf("%s\nGo: %v; TypeScript: %q", asked[i].Whole, err, got.Refused)
			if wrong++; wrong > 12 {
				t.FailNow()
			}
		}
	}
	t.Logf("%d declarations, %d taken", len(asked), taken)
	if taken < len(declarations) || taken > len(asked)/2 {
		t.Errorf("%d of %d declarations are taken", taken, len(asked))
	}
}
