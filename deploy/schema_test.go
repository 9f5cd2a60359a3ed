package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// typed returns a TypeScript program that makes every object of a manifest from a literal, of the type of its
// kind: a key that the kind does not have, or a value of another type, does not compile.
func typed(t *testing.T, manifest []byte) string {
	t.Helper()
	var b strings.Builder
	d := yaml.NewDecoder(bytes.NewReader(manifest))
	for i := 0; ; i++ {
		var o map[string]any
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return b.String()
		} else if err != nil {
			t.Fatal(err)
		}
		version, kind := o["apiVersion"], o["kind"] // which the import names
		delete(o, "apiVersion")
		delete(o, "kind")
		literal, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "import { %s as K%d } from %q;\nnew K%d(%s);\n", kind, i, fmt.Sprintf("kubernetes-models/%s/%s",
			version, kind), i, literal)
	}
}

// TestManifestsHaveTypes: every manifest is made of keys and types that Kubernetes knows.
func TestManifestsHaveTypes(t *testing.T) {
	modules, err := filepath.Abs("kubernetes/testdata/schema/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "typescript")); err != nil {
		t.Log(
			"NOT RUN: manifests against Kubernetes' types: npm ci --ignore-scripts in deploy/kubernetes/testdata/schema installs them")
		return
	}
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	programs := map[string]string{}
	files := releases(t)
	for _, folder := range folders {
		manifests, err := filepath.Glob(folder + "/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, manifests...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if base := strings.TrimSuffix(filepath.Base(file), ".yaml"); base != "kustomization" && base != "task" {
			programs[strings.ReplaceAll(strings.TrimSuffix(file, ".yaml"), "/", "-")] = typed(t, text)
		}
	}
	stage := programs["kubernetes-stage"]
	broken := map[string]string{
		"unknown":  strings.Replace(stage, `"maxUnavailable"`, `"maxUnavailible"`, 1),
		"nested":   strings.Replace(stage, `"periodSeconds"`, `"periodSecond"`, 1),
		"mistyped": strings.Replace(stage, `"replicas":2`, `"replicas":"2"`, 1),
	}
	args := []string{filepath.Join(modules, "typescript", "bin", "tsc"), "--noEmit", "--strict", "--skipLibCheck",
		"--module", "nodenext"}
	for name, text := range programs {
		broken[name] = text
	}
	for name, text := range broken {
		if err := os.WriteFile(filepath.Join(dir, name+".ts"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, name+".ts")
	}
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for name := range broken {
		var errs []string
		for _, l := range strings.Split(string(out), "\n") {
			if strings.HasPrefix(l, name+".ts(") {
				errs = append(errs, l)
			}
		}
		if _, shipped := programs[name]; shipped && len(errs) > 0 {
			t.Errorf("%s.yaml:\n%s", name, strings.Join(errs, "\n"))
		} else if !shipped && len(errs) != 1 {
			t.Errorf("a manifest with one mistake, %s: %q", name, errs)
		}
	}
}
