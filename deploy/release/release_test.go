package main

import (
	"archive/tar"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// targets are the systems whose releases are compared: this machine's, which writes the manual pages, and the one that
// is least like it.
var targets = []system{{runtime.GOOS, runtime.GOARCH}, {"windows", "amd64"}}

// TestReleaseIsReproducible makes a version of this commit twice, for two systems, in clones at different places, of
// which each has a cache of the compiler of its own, and compares all checksums. Then it installs what it made.
func TestReleaseIsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: TestReleaseIsReproducible: builds both programs for two systems, twice from nothing")
	}
	var sums [2]string
	var folders [2]string
	from := "../.." // then the first clone, because a commit may come meanwhile
	for i := range sums {
		root := filepath.Join(t.TempDir(), strings.Repeat("deeper/", i)+"clone")
		must(t, os.MkdirAll(filepath.Dir(root), 0o755))
		if out, err := exec.Command("git", "clone", "-q", from, root).CombinedOutput(); err != nil {
			t.Fatalf("git clone: %v\n%s", err, out)
		}
		from = root
		folders[i] = filepath.Join(t.TempDir(), "dist")
		r := release{root: root, out: folders[i], version: "v1.2.3", certificates: debianAuthorities, systems: targets,
			cache: t.TempDir()}
		must(t, r.make())
		data, err := os.ReadFile(filepath.Join(folders[i], "SHA256SUMS"))
		must(t, err)
		sums[i] = string(data)
	}
	if sums[0] != sums[1] {
		t.Errorf("two releases of a commit differ:\n%s\n%s", sums[0], sums[1])
	}
	head, err := exec.Command("git", "-C", from, "rev-parse", "HEAD").Output()
	must(t, err)
	inspect(t, folders[0], strings.TrimSpace(string(head)))
}

// inspect checks a release of v1.2.3 for the targets, made of a commit: it has all files, their sums hold, and what is
// installed from it works.
func inspect(t *testing.T, folder, head string) {
	t.Helper()
	listed, err := os.ReadFile(filepath.Join(folder, "SHA256SUMS"))
	must(t, err)
	for _, want := range []string{".tar.gz", ".zip", ".deb", ".rpm", "_oci.tar", "_chart.tgz", "_sbom_ingest.cdx.json",
		"_sbom_learner.cdx.json",
		"_provenance.json"} {
		if !strings.Contains(string(listed), want+"\n") {
			t.Errorf("no %s in\n%s", want, listed)
		}
	}
	tool := func(name string, args ...string) []byte {
		t.Helper()
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return out
	}
	check := exec.Command("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	check.Dir = folder
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
	t.Run("archive", func(t *testing.T) {
		dir := t.TempDir()
		tool("tar", "-xzf", filepath.Join(folder, "panlearn_1.2.3_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz"), "-C", dir)
		installedAt(t, filepath.Join(dir, "panlearn-1.2.3"), "bin", "deploy/tasks/quickstart.yaml", "docs/README.md",
			"man1/learner-serve.1", "completions/bash/learner", "completions/powershell/ingest",
			"deploy/systemd/panlearn-serve@.service",
			"deploy/kubernetes/issuer/issuer.yaml", "deploy/helm/panlearn/Chart.yaml")
		if _, err := os.Stat(filepath.Join(dir, "panlearn-1.2.3/deploy/kubernetes/testdata")); err == nil {
			t.Error("what the tests read is in the archive")
		}
	})
	t.Run("Debian package", func(t *testing.T) {
		if _, err := exec.LookPath("dpkg"); err != nil {
			t.Skip("NOT RUN: the Debian package was not installed: no dpkg")
		}
		root, deb := t.TempDir(), filepath.Join(folder, "panlearn_1.2.3-1_"+runtime.GOARCH+".deb")
		if os.Geteuid() == 0 {
			must(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg/updates"), 0o755))
			must(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg/info"), 0o755))
			must(t, os.MkdirAll(filepath.Join(root, "etc"), 0o755))
			must(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644))
			tool("dpkg", "--root="+root, "--log="+filepath.Join(t.TempDir(), "log"), "--force-script-chrootless", "-i", deb)
		} else {
			t.Log("NOT RUN: the Debian package was unpacked and not installed: this user is not root")
			tool("dpkg-deb", "-x", deb, root)
		}
		if _, err := exec.LookPath("systemd-sysusers"); err == nil && os.Geteuid() == 0 {
			users, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
			if err != nil || !strings.Contains(string(users), "panlearn-serve:") {
				t.Errorf("the package made no user panlearn-serve: %v\n%s", err, users)
			}
		}
		installedAt(t, root, "usr/bin", "usr/share/panlearn/deploy/tasks/quickstart.yaml",
			"usr/share/panlearn/docs/README.md",
			"usr/share/man/man1/learner-serve.1.gz", "usr/share/bash-completion/completions/learner",
			"usr/share/zsh/vendor-completions/_learner", "usr/lib/systemd/system/panlearn-serve@.service",
			"usr/lib/sysusers.d/panlearn.conf")
		unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/panlearn-serve@.service"))
		must(t, err)
		if !strings.Contains(string(unit), "\nExecStart=/usr/bin/learner serve") {
			t.Errorf("the unit starts another program:\n%s", unit)
		}
	})
	t.Run("chart", func(t *testing.T) {
		text := string(tool("tar", "-xzOf", filepath.Join(folder, "panlearn_1.2.3_chart.tgz"), "panlearn/Chart.yaml"))
		if !strings.Contains(text, "\nversion: \"1.2.3\"\nappVersion: \"1.2.3\"\n") {
			t.Errorf("the chart is of another version:\n%s", text)
		}
	})
	t.Run("image", func(t *testing.T) { imageIsClosed(t, filepath.Join(folder, "panlearn_1.2.3_oci.tar")) })
	t.Run("provenance", func(t *testing.T) {
		var p origin
		data, err := os.ReadFile(filepath.Join(folder, "panlearn_1.2.3_provenance.json"))
		must(t, err)
		must(t, json.Unmarshal(data, &p))
		if p.Commit != head || len(p.Programs) != 4 || len(p.Modules) < 50 || p.Go == "" || p.Certificates == nil ||
			len(p.Certificates.SHA256) != 64 {
			t.Errorf("commit %s of %s, %d programs, %d modules, %+v", p.Commit, head, len(p.Programs), len(p.Modules),
				p.Certificates)
		}
		bill, err := os.ReadFile(filepath.Join(folder, "panlearn_1.2.3_sbom_learner.cdx.json"))
		must(t, err)
		var b struct {
			Components []struct{ Evidence struct{ Licenses []any } }
		}
		must(t, json.Unmarshal(bill, &b))
		licensed := 0
		for _, c := range b.Components {
			licensed += min(1, len(c.Evidence.Licenses))
		}
		if len(b.Components) < 50 || licensed < len(b.Components)*9/10 {
			t.Errorf("the bill names %d modules, %d of them with a licence", len(b.Components), licensed)
		}
		for _, m := range p.Modules {
			if !strings.HasPrefix(m.Sum, "h1:") {
				t.Errorf("%s %s has the sum %q", m.Path, m.Version, m.Sum)
			}
		}
	})
}

// installedAt checks that files are there, and that the programs say which version they are, and of which commit.
func installedAt(t *testing.T, root, bin string, files ...string) {
	t.Helper()
	for _, f := range files {
		if info, err := os.Stat(filepath.Join(root, f)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
	for _, p := range programs {
		program := filepath.Join(root, bin, p)
		out, err := exec.Command(program, "--version").Output()
		must(t, err)
		if !strings.HasPrefix(string(out), "panlearn v1.2.3, ") {
			t.Errorf("%s says %q", p, out)
		}
		var version struct{ Version, Revision string }
		out, err = exec.Command(program, "version", "--json").Output()
		must(t, err)
		must(t, json.Unmarshal(out, &version))
		if version.Version != "v1.2.3" || len(version.Revision) != 40 {
			t.Errorf("%s says %s", p, out)
		}
	}
}

// imageIsClosed reads an image back: it has the programs and certificates, and is run by a user that is not root.
func imageIsClosed(t *testing.T, file string) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xf", file, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	index, err := layout.ImageIndexFromPath(dir)
	must(t, err)
	must(t, validate.Index(index))
	manifest, err := index.IndexManifest()
	must(t, err)
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Fatalf("%+v", manifest)
	}
	all, err := index.ImageIndex(manifest.Manifests[0].Digest)
	must(t, err)
	manifest, err = all.IndexManifest()
	must(t, err)
	if len(manifest.Manifests) == 0 {
		t.Error("no image")
	}
	for _, m := range manifest.Manifests {
		img, err := all.Image(m.Digest)
		must(t, err)
		config, err := img.ConfigFile()
		must(t, err)
		if c := config.Config; c.User != "65532:65532" || len(c.Volumes)+len(c.ExposedPorts) != 0 ||
			config.Architecture != m.Platform.Architecture ||
			c.Labels["org.opencontainers.image.version"] != "v1.2.3" ||
			len(c.Labels["org.opencontainers.image.revision"]) != 40 {
			t.Errorf("%+v", config)
		}
		layers, err := img.Layers()
		must(t, err)
		names := map[string]bool{}
		for _, l := range layers {
			data, err := l.Uncompressed()
			must(t, err)
			in := tar.NewReader(data)
			for {
				h, err := in.Next()
				if err == io.EOF {
					break
				}
				must(t, err)
				names[h.Name] = true
				if h.Uid != 0 || h.Mode&0o022 != 0 || h.Mode&0o6000 != 0 {
					t.Errorf("%s: owner %d, mode %o", h.Name, h.Uid, h.Mode)
				}
			}
		}
		for _, want := range []string{"usr/local/bin/learner", "usr/local/bin/ingest", "etc/panlearn/tasks/quickstart.yaml",
			"etc/ssl/certs/ca-certificates.crt"} {
			if !names[want] {
				t.Errorf("no %s in the image", want)
			}
		}
	}
}

// TestCertificates: what the image trusts comes from files of one folder, in order; where there is none, a release has
// none, and a folder of something else is refused.
func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	const one, two = "-----BEGIN CERTIFICATE-----\nb\n-----END CERTIFICATE-----",
		"-----BEGIN CERTIFICATE-----\na\n-----END CERTIFICATE-----\n"
	must(t, os.WriteFile(filepath.Join(dir, "1.crt"), []byte(one), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "2.crt"), []byte(two), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "other"), []byte("no certificate"), 0o600))
	both, err := readAuthorities(dir)
	must(t, err)
	if got := string(both); got != one+"\n"+two {
		t.Errorf("%q", got)
	}
	none, err := readAuthorities(filepath.Join(dir, "none"))
	must(t, err)
	for _, bad := range []string{filepath.Join(dir, "other"), t.TempDir()} {
		if _, err := readAuthorities(bad); err == nil || none != nil {
			t.Errorf("%s: %v, %q", bad, err, none)
		}
	}
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
	at := time.Unix(1e9, 0)
	file := filepath.Join(t.TempDir(), "a.tar")
	f, err := os.Create(file)
	must(t, err)
	must(t, writeTar(f, []entry{{name: "a/b", data: []byte("text"), mode: 0o755}}, at))
	must(t, f.Close())
	f, err = os.Open(file)
	must(t, err)
	defer f.Close()
	in := tar.NewReader(f)
	h, err := in.Next()
	must(t, err)
	data, err := io.ReadAll(in)
	must(t, err)
	if h.Name != "a/b" || !h.ModTime.Equal(at) || string(data) != "text" || h.Mode != 0o755 {
		t.Errorf("%+v, %q", h, data)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
