package main

import (
	"archive/tar"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestReleaseIsReproducible makes a version of this commit twice, for this machine's system alone, in two clones at
// different places, and compares all checksums. It looks at the package and at the image, and runs the program.
func TestReleaseIsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: TestReleaseIsReproducible: builds both programs twice")
	}
	var sums [2]string
	var folders [2]string
	for i := range sums {
		root := filepath.Join(t.TempDir(), strings.Repeat("deeper/", i)+"clone")
		must(t, os.MkdirAll(filepath.Dir(root), 0o755))
		if out, err := exec.Command("git", "clone", "-q", "../..", root).CombinedOutput(); err != nil {
			t.Fatalf("git clone: %v\n%s", err, out)
		}
		folders[i] = filepath.Join(t.TempDir(), "dist")
		r := release{root: root, out: folders[i], version: "v1.2.3", certificates: "/etc/ssl/certs/ca-certificates.crt",
			systems: []system{{runtime.GOOS, runtime.GOARCH}}}
		must(t, r.make())
		data, err := os.ReadFile(filepath.Join(folders[i], "SHA256SUMS"))
		must(t, err)
		sums[i] = string(data)
	}
	if sums[0] != sums[1] {
		t.Errorf("two releases of a commit differ:\n%s\n%s", sums[0], sums[1])
	}
	for _, want := range []string{".tar.gz", ".deb", ".rpm", "_oci.tar", "_sbom_ingest.cdx.json", "_sbom_learner.cdx.json",
		"_provenance.json"} {
		if !strings.Contains(sums[0], want+"\n") {
			t.Errorf("no %s in\n%s", want, sums[0])
		}
	}
	program := filepath.Join(t.TempDir(), "learner")
	extract(t, filepath.Join(folders[0], "panlearn_1.2.3_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"), "/learner", program)
	out, err := exec.Command(program, "--version").Output()
	must(t, err)
	if !strings.HasPrefix(string(out), "panlearn v1.2.3, ") {
		t.Errorf("the released program says %q", out)
	}
	if dpkg, err := exec.LookPath("dpkg-deb"); err == nil {
		out, err := exec.Command(dpkg, "-c", filepath.Join(folders[0], "panlearn_1.2.3-1_"+runtime.GOARCH+".deb")).Output()
		must(t, err)
		for _, want := range []string{"/usr/bin/learner\n", "/usr/lib/systemd/system/panlearn-stage@.service\n",
			"/usr/share/man/man1/ingest-shuffle.1.gz\n", "/usr/lib/sysusers.d/panlearn.conf\n"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("no %s in the Debian package:\n%s", want, out)
			}
		}
	} else {
		t.Log("NOT RUN: the Debian package was not read: no dpkg-deb")
	}
}

// extract writes the file of a compressed tar whose name ends so.
func extract(t *testing.T, archive, suffix, to string) {
	t.Helper()
	c := exec.Command("tar", "-xzOf", archive, "--wildcards", "*"+suffix)
	data, err := c.Output()
	must(t, err)
	must(t, os.WriteFile(to, data, 0o755))
}

func TestChangesAreRefused(t *testing.T) {
	root := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=t", "-c", "user.email=t@invalid", "commit", "-q",
		"--allow-empty", "-m", "begin"}} {
		c := exec.Command("git", args...)
		c.Dir = root
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git: %v\n%s", err, out)
		}
	}
	r := release{root: root, version: "v1"}
	must(t, r.identify())
	must(t, os.WriteFile(filepath.Join(root, "new"), nil, 0o644))
	if err := r.identify(); err == nil || !strings.Contains(err.Error(), "has changes") {
		t.Errorf("%v: want a checkout with changes refused", err)
	}
}

// TestTarHasTheTimeOfTheCommit reads a tar back.
func TestTarHasTheTimeOfTheCommit(t *testing.T) {
	r := release{at: time.Unix(1e9, 0)}
	file := filepath.Join(t.TempDir(), "a.tar")
	f, err := os.Create(file)
	must(t, err)
	must(t, r.tar(f, []entry{{"a/b", []byte("text"), 0o755}}))
	must(t, f.Close())
	f, err = os.Open(file)
	must(t, err)
	defer f.Close()
	in := tar.NewReader(f)
	h, err := in.Next()
	must(t, err)
	data, err := io.ReadAll(in)
	must(t, err)
	if h.Name != "a/b" || !h.ModTime.Equal(r.at) || string(data) != "text" || h.Mode != 0o755 {
		t.Errorf("%+v, %q", h, data)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
