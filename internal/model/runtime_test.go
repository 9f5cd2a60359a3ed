package model

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A runtime is ONNX Runtime, its WebAssembly build under node, as a process that answers one job a line.
type runtime struct {
	in  io.WriteCloser
	out *bufio.Reader
}

// A tensor goes to the runtime and comes back. Data are numbers, texts, or the texts of numbers that are not finite.
type tensor struct {
	Type string `json:"type"`
	Dims []int  `json:"dims"`
	Data []any  `json:"data"`
}

// startRuntime starts the runtime and stops it at the end of the test. Where node or its package is missing, which
// testdata/runtime/package-lock.json pins, it says so and skips.
func startRuntime(t *testing.T) *runtime {
	t.Helper()
	dir := filepath.Join("testdata", "runtime")
	_, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "node_modules", "onnxruntime-web", "package.json"))
	}
	if err != nil {
		const what = "exported models in ONNX Runtime: it needs node, and `npm ci` in internal/model/testdata/runtime"
		fmt.Printf("NOT RUN: %s: %s\n", t.Name(), what)
		t.Skip("NOT RUN: " + what)
	}
	command := exec.Command("node", "run.mjs")
	command.Dir, command.Stderr = dir, os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("the runtime: %v", err)
		}
	})
	return &runtime{in: in, out: bufio.NewReader(out)}
}

// fataler is a *testing.T or *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// run loads a model and runs it once.
func (r *runtime) run(t fataler, model []byte, inputs map[string]tensor) map[string]tensor {
	t.Helper()
	job, err := json.Marshal(map[string]any{"model": model, "inputs": inputs})
	if err != nil {
		t.Fatalf("%v", err)
	}
	if _, err := r.in.Write(append(job, '\n')); err != nil {
		t.Fatalf("to the runtime: %v", err)
	}
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("from the runtime: %v", err)
	}
	var answer struct {
		Error   string            `json:"error"`
		Outputs map[string]tensor `json:"outputs"`
	}
	if err := json.Unmarshal(line, &answer); err != nil || answer.Error != "" {
		t.Fatalf("the runtime: %v %s", err, answer.Error)
	}
	return answer.Outputs
}

// number reads an entry of a tensor of doubles.
func (a tensor) number(t fataler, i int) float64 {
	t.Helper()
	switch v := a.Data[i].(type) {
	case float64:
		return v
	case string:
		if f, err := strconv.ParseFloat(strings.Replace(v, "Infinity", "Inf", 1), 64); err == nil {
			return f
		}
	}
	t.Fatalf("entry %d is no number", i)
	return 0
}
