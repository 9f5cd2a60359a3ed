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

// Compile returns a folder of the test's own with the device's src/ and test/ as JavaScript, a file for each. It checks
// no types: the client's own tests do, with what tsc makes of the same sources.
func Compile(t *testing.T) string {
	t.Helper()
	folder, _ := Client(t)
	out := t.TempDir()
	var sources []string
	for _, part := range []string{"src", "test"} {
		files, err := filepath.Glob(filepath.Join(folder, part, "*.ts"))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, files...)
	}
	esbuild(t, folder, append(sources, "--platform=neutral", "--outdir="+out)...)
	for _, name := range []string{"package.json", "node_modules"} { // node looks for them in the folders around a file
		if err := os.Symlink(filepath.Join(folder, name), filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// CompilePage bundles test/page.ts and test/worker.ts for a browser, and returns their folder, the test's own.
func CompilePage(t *testing.T) string {
	t.Helper()
	folder, _ := Client(t)
	out := t.TempDir()
	esbuild(t, folder, "test/page.ts", "test/worker.ts", "--bundle", "--splitting", "--outdir="+out)
	return out
}

func esbuild(t *testing.T, folder string, args ...string) {
	t.Helper()
	command := exec.Command(filepath.Join(folder, "node_modules", ".bin", "esbuild"),
		append(args, "--format=esm", "--log-level=warning")...)
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("esbuild: %v\n%s", err, out)
	}
}

// Answers passes questions to the device in TypeScript and returns its answers, in order: test/answers.ts lists the
// questions.
func Answers[Q, A any](t *testing.T, questions []Q) []A {
	t.Helper()
	_, node := Client(t)
	var asked bytes.Buffer
	encoder := json.NewEncoder(&asked)
	for _, q := range questions {
		if err := encoder.Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), node, filepath.Join(Compile(t), "test", "answers.js"))
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
