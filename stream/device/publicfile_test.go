package device_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/panlearn/panlearn/internal/test/memory"

	"github.com/panlearn/panlearn/learner/task"
	"github.com/panlearn/panlearn/stream/device/consent"
	"github.com/panlearn/panlearn/stream/device/participation"
)

// modelOf returns the file of a public model of three outputs.
func modelOf(t *testing.T, change func(*task.PublicModel)) []byte {
	t.Helper()
	p := &task.PublicModel{Version: task.PublicVersion, Sample: task.PublicSample{Rows: 9},
		Inputs: []string{"x1", "x2", "x3"}, Blocks: []task.PublicBlock{{Name: "z", Outputs: 3, Range: 1,
			Weights: task.NewMatrix([][]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, 8)}}}
	change(p)
	data, err := p.Encode()
	must(t, err)
	return data
}

// A task whose public file is not the declared one, or is none that a device computes with, is refused by name before
// anything is charged: a broker has no other file for a declaration, and a learner that signs both has only files
// within the limits. (A Task with a file of more than 256 KiB is no message at all.)
func TestPublicFilesOfOthers(t *testing.T) {
	good := modelOf(t, func(*task.PublicModel) {})
	edited := func(old, new string) []byte { return bytes.Replace(good, []byte(old), []byte(new), 1) }
	for _, c := range []struct {
		name           string
		declared, sent []byte
		word           string // of the refusal; "" for none
	}{
		{"as declared", good, good, ""},
		{"none", good, nil, "features.public"},
		{"another", good, modelOf(t, func(p *task.PublicModel) { p.Sample.Rows++ }), "features.public"},
		{"the same and more", good, append(bytes.Clone(good), ' '), "features.public"},
		{"undeclared", nil, good, "features.public"},
		{"blank", bytes.Repeat([]byte(" "), task.MaxPublic), bytes.Repeat([]byte(" "), task.MaxPublic), "features.public"},
		{"no JSON", []byte("{"), []byte("{"), "features.public"},
		{"deep", bytes.Repeat([]byte("["), 1<<17), bytes.Repeat([]byte("["), 1<<17), "features.public"},
		{"other inputs", edited("x2", "x4"), edited("x2", "x4"), "features.public.inputs.1"},
		{"many outputs", edited(`"outputs":3`, `"outputs":1048576`), edited(`"outputs":3`, `"outputs":1048576`),
			"features.public.blocks.0.outputs"},
		{"NaN", edited(`"range":1`, `"range":NaN`), edited(`"range":1`, `"range":NaN`), "features.public"},
		{"huge", edited(`"range":1`, `"range":1e300`), edited(`"range":1`, `"range":1e300`),
			"features.public.blocks.0.range"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			w := newWorld(t, plan{rounds: 1, cohort: 10, deadline: time.Minute})
			var err error
			w.task.Declaration, err = w.spec.Canonical()
			must(t, err)
			if c.declared != nil {
				sum := sha256.Sum256(c.declared)
				declared := strings.Replace(fmt.Sprintf(declaration, w.spec.Privacy.Trust, "none", "1", 10),
					"max: 1}}", fmt.Sprintf("max: 1, hidden: true}, public: '%s'}", "sha256:"+hex.EncodeToString(sum[:])), 1)
				w.spec, err = task.Parse([]byte(declared), nil)
				must(t, err)
				w.task.Declaration, err = w.spec.Canonical()
				must(t, err)
			}
			w.task.Public = c.sent
			w.hash = taskHash(t, w.task)
			store, book := participation.NewMemoryStore(), memory.NewLedger()
			before := content(t, store, book)
			w.open(ctx, 1, 1, w.announce(ctx, 1))
			config := w.config(store)
			config.Ledger = book
			_, err = w.client(config).Run(ctx, rows(10, false))
			var refused *consent.RefusedError
			if c.word == "" {
				if errors.As(err, &refused) || w.reports(1, 1) != 10 {
					t.Errorf("%s: %d reports, %v", c.name, w.reports(1, 1), err)
				}
				return
			}
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.word) || len(err.Error()) > 500 {
				t.Errorf("%s: %v: want a refusal that names %s", c.name, err, c.word)
			}
			if n := w.reports(1, 1); n != 0 || content(t, store, book) != before {
				t.Errorf("%s: %d reports, and %s in store and ledger", c.name, n, content(t, store, book))
			}
		})
	}
}
