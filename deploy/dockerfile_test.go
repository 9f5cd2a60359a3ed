package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDockerfile: it builds with the Go of go.mod, copies what is there, and leaves nobody root.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	wants := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))[1]
	if !strings.Contains(string(text), "FROM golang:"+wants+" AS build\n") {
		t.Errorf("go.mod wants Go %s, the Dockerfile builds with another", wants)
	}
	copied := 0
	for _, m := range regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`).FindAllStringSubmatch(string(text), -1) {
		for _, source := range strings.Fields(m[1]) {
			copied++
			if _, err := os.Stat(filepath.Join("..", source)); err != nil {
				t.Error(err)
			}
		}
	}
	_, last, _ := strings.Cut(string(text), "FROM scratch AS panlearn\n")
	if copied < 4 || !strings.Contains(last, "\nUSER 65532:65532\n") {
		t.Errorf("%d files copied; the image's user: %q", copied, last)
	}
}

// TestStaticBuild: without cgo, as the image is built, every package has its Go files and none needs C. It compiles
// nothing.
func TestStaticBuild(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}}{{if .CgoFiles}} cgo{{end}}",
		"../cmd/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), " cgo\n") ||
		!strings.Contains(string(out), "github.com/cockroachdb/pebble") {
		t.Errorf("without cgo: %v\n%s", err, out)
	}
}
