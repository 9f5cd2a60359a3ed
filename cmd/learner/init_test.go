package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/panlearn/panlearn/internal/rehearse"
)

// bent writes rows of which the label depends on a product, a bend and a word.
func bent(t *testing.T, path string, seed uint64, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 17))
	var b bytes.Buffer
	b.WriteString("a,b,c,town,y\n")
	for range n {
		a, x, c, town := r.NormFloat64(), r.NormFloat64(), r.NormFloat64(), r.IntN(6)
		score := 3*a*x/(1+math.Abs(a*x)) + math.Abs(c) - 1 + float64(town%3)/2
		y := "no"
		if r.Float64() < 1/(1+math.Exp(-2*score)) {
			y = "yes"
		}
		fmt.Fprintf(&b, "%.4f,%.4f,%.4f,town%d,%s\n", a, x, c, town, y)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// jsonOf runs a command and reads the JSON that it prints into a value.
func jsonOf(t *testing.T, c *cobra.Command, into any, args ...string) {
	t.Helper()
	out := new(bytes.Buffer)
	c.SetArgs(args)
	c.SetOut(out)
	c.SetErr(io.Discard)
	err := c.ExecuteContext(t.Context())
	if err == nil && into != nil {
		err = json.Unmarshal(out.Bytes(), into)
	}
	if err != nil {
		t.Fatalf("%s %v: %v", c.Name(), args, err)
	}
}

// TestDraftBeatsItsPublicModel: what 20,000 users learn from a draft of 600 rows is better than the public model that
// it begins with, and than the draft that begins with nothing. All seeds are fixed, so this is one comparison.
func TestDraftBeatsItsPublicModel(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	bent(t, in("sample.csv"), 1, 600)
	bent(t, in("users.csv"), 2, 20000)
	bent(t, in("test.csv"), 3, 5000)
	loss := func(name string, flags ...string) float64 {
		jsonOf(t, newInit(), nil, append([]string{"--data", in("sample.csv"), "--users", "20000", "-o", in(name)},
			flags...)...)
		var report struct{ Mean rehearse.Outcome }
		jsonOf(t, newSimulate(), &report, "-f", in(name), "--data", in("users.csv"), "--test", in("test.csv"), "--json",
			"--set", "validation.off=true")
		return *report.Mean.TestLogLoss
	}
	drafted, plain := loss("drafted.yaml"), loss("plain.yaml", "--no-public-labels")
	var alone struct {
		LogLoss float64 `json:"log_loss"`
	}
	jsonOf(t, newEval(), &alone, "--model", in("drafted-start.json"), "--data", in("test.csv"), "--json")
	if drafted > alone.LogLoss-0.002 || drafted > plain-0.05 {
		t.Errorf("log loss %.4f, of the public model alone %.4f, of the draft that begins with nothing %.4f", drafted,
			alone.LogLoss, plain)
	}
	t.Logf("log loss %.4f, of the public model alone %.4f, of the draft that begins with nothing %.4f", drafted,
		alone.LogLoss, plain)
}
