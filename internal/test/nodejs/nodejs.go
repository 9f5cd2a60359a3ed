// Package nodejs runs scripts of clients/typescript, the device of browsers and Node, for tests that compare its answers with
// those of this module.
package nodejs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// Client returns the folder of the device and the path of node. Where node or the packages are missing that
// package-lock.json pins, it prints so and skips.
func Client(t *testing.T) (folder, node string) {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	folder, err := filepath.Abs(filepath.Join(filepath.Dir(file), "..", "..", "..", "clients", "typescript"))
	if err != nil {
		t.Fatal(err)
	}
	if node, err = exec.LookPath("node"); err == nil {
		_, err = os.Stat(filepath.Join(folder, "node_modules", "typescript", "package.json"))
	}
	if err != nil {
		const what = "the device in TypeScript: it needs node, and `npm ci` in clients/typescript"
		fmt.Printf("NOT RUN: %s: %s\n", t.Name(), what)
		t.Skip("NOT RUN: " + what)
	}
	return folder, node
}

// Run runs a script of the client's package.json.
func Run(t *testing.T, folder string, script string) string {
	t.Helper()
	command := exec.Command("npm", "run", "--silent", script)
	command.Dir = folder
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("npm run %s: %v\n%s", script, err, out)
	}
	return string(out)
}

// compiled holds the folder into which a process compiles once, its own: several packages are tested at a time.
var compiled struct {
	sync.Once
	folder string
	err    error
}

// Answers passes questions to the device in TypeScript and returns its answers, in order: test/answers.ts lists the
// questions.
func Answers[Q, A any](t *testing.T, questions []Q) []A {
	t.Helper()
	folder, node := Client(t)
	compiled.Do(func() {
		compiled.folder, compiled.err = os.MkdirTemp("", "panlearn-node-")
		if compiled.err != nil {
			return
		}
		command := exec.Command(filepath.Join(folder, "node_modules", ".bin", "esbuild"), "test/answers.ts", "--bundle",
			"--platform=node", "--format=esm", "--log-level=warning", "--outfile="+filepath.Join(compiled.folder, "answers.mjs"))
		command.Dir = folder
		if out, err := command.CombinedOutput(); err != nil {
			compiled.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if compiled.err != nil {
		t.Fatal(compiled.err)
	}
	var asked bytes.Buffer
	encoder := json.NewEncoder(&asked)
	for _, q := range questions {
		if err := encoder.Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), node, filepath.Join(compiled.folder, "answers.mjs"))
	var said, failed bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = &asked, &said, &failed
	if err := command.Run(); err != nil {
		t.Fatalf("node: %v\n%s", err, failed.Bytes())
	}
	answers := make([]A, len(questions))
	decoder := json.NewDecoder(&said)
	for i := range answers {
		if err := decoder.Decode(&answers[i]); err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
	}
	return answers
}
