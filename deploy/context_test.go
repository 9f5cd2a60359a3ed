package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// buildContext returns a function that reports whether a file of the clone enters the image's build, by
// Docker's rules: the last pattern that matches a file or a folder above it decides, ! takes it in again, *
// stays within a name, ** does not.
func buildContext(t *testing.T) func(file string) bool {
	t.Helper()
	text, err := os.ReadFile("Dockerfile.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	type pattern struct {
		in    bool
		match *regexp.Regexp
	}
	var patterns []pattern
	for _, l := range strings.Split(string(text), "\n") {
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		name, in := strings.CutPrefix(l, "!")
		expr := strings.NewReplacer(`\*\*/`, `(.*/)?`, `\*`, `[^/]*`).Replace(regexp.QuoteMeta(name))
		patterns = append(patterns, pattern{in, regexp.MustCompile("^" + expr + "(/.*)?$")})
	}
	return func(file string) bool {
		in := true
		for _, p := range patterns {
			if p.match.MatchString(file) {
				in = p.in
			}
		}
		return in
	}
}

// TestBuildContext: what the commands are built of enters the image's build, and nothing that people leave in a
// clone: keys, state, events.
func TestBuildContext(t *testing.T) {
	enters := buildContext(t)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Module,Dir,GoFiles,EmbedFiles", "../cmd/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{"go.mod", "go.sum", "deploy/setup.sh"}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Module              *struct{ Main bool }
			Dir                 string
			GoFiles, EmbedFiles []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Module == nil || !p.Module.Main {
			continue
		}
		dir, err := filepath.Rel(root, p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range slices.Concat(p.GoFiles, p.EmbedFiles) {
			wanted = append(wanted, path.Join(filepath.ToSlash(dir), filepath.ToSlash(f)))
		}
	}
	if len(wanted) < 300 {
		t.Fatalf("%d files: the list is broken", len(wanted))
	}
	for _, f := range wanted {
		if !enters(f) {
			t.Errorf("%s is part of the commands and does not enter the build", f)
		}
	}
	for _, f := range []string{".git/config", "broker/learner.nk", "broker/admin-key.pem", "broker/admin.env",
		"broker/panlearn.conf", "state/nats/jetstream/x.blk", "state/LOCK",
		"state/000004.log", "devices/a9a.participation/x", "demo/learner/LOCK", "events.jsonl", "task.yaml",
		"deploy/nats/broker/stage.nk", "deploy/nats/site.conf", "learner.key",
		"internal/dashboard/testdata/axe/package.json", "cmd/learner/main_test.go", "bin/learner"} {
		if enters(f) {
			t.Errorf("%s enters the build", f)
		}
	}
	// The clone itself adds files of these kinds only.
	kinds := []string{".go", ".yaml", ".css", ".js", ".html", ".svg", ".json", ".ico", ".woff2"}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		}
		f, _ := filepath.Rel(root, name)
		if f = filepath.ToSlash(f); !d.IsDir() && enters(f) && !slices.Contains(kinds, path.Ext(f)) &&
			!slices.Contains(wanted, f) {
			t.Errorf("%s enters the build", f)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestImageVersion: the image's build sets the variable that `version` prints, and does not go on without.
func TestImageVersion(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`-ldflags="([^"]*)"`).FindStringSubmatch(string(text))
	guard := regexp.MustCompile(`(?m)^RUN (test -n .*)$`).FindStringSubmatch(string(text))
	if flags == nil || guard == nil {
		t.Fatalf("flags of the linker %q, guard %q", flags, guard)
	}
	for version, want := range map[string]bool{"": false, "v9.9": true} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", guard[1])
		cmd.Env = []string{"VERSION=" + version}
		if ran := cmd.Run() == nil; ran != want {
			t.Errorf("with version %q the build goes on: %t", version, ran)
		}
	}
	for _, s := range readCompose(t).Services {
		if args, _ := s.Build["args"].(map[string]any); (s.Image == "panlearn" || s.Image == "panlearn-setup") &&
			args["VERSION"] == nil {
			t.Errorf("%s is built without a version", s.Image)
		}
	}
	program := filepath.Join(t.TempDir(), "ingest")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags="+strings.ReplaceAll(flags[1], "$VERSION", "v9.9"),
		"-o", program, "../cmd/ingest")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), program, "version").Output(); err != nil ||
		!strings.HasPrefix(string(out), "panlearn v9.9, ") {
		t.Errorf("version prints %q (%v)", out, err)
	}
}
