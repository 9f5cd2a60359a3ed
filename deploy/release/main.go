// Command release makes what a version of panlearn is published as, in one folder, from a clean checkout:
//
//   - for each system an archive of the two programs, manual pages, completions, shipped tasks and the broker's
//     configuration; for Linux the same as Debian and RPM packages, with the units of systemd;
//   - an image for both Linux architectures as an OCI layout: the programs, shipped tasks and the certificates of public
//     authorities that Debian ships, run by a user that is not root;
//   - the Helm chart, with the version in it;
//   - the software bill of materials (CycloneDX) and a record of what was built, from which modules, by what and with
//     which settings;
//   - SHA256SUMS of all of these.
//
// Two runs on one commit write the same bytes: their only time is the commit's. It is a module of its own, so
// that what it needs is none of the programs' requirements. It signs and publishes nothing.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A system names an operating system and an architecture, as Go does.
type system struct{ os, arch string }

func (s system) String() string { return s.os + "/" + s.arch }

var systems = []system{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}}

var programs = []string{"ingest", "learner"}

func main() {
	r := release{}
	only := ""
	flag.StringVar(&r.root, "root", "../..", "the checkout")
	flag.StringVar(&r.out, "out", "../../dist", "the folder to write; it must not exist")
	flag.StringVar(&r.version, "version", "", "the version, such as v0.1.0; empty: what git describe says")
	flag.StringVar(&only, "only", "", "some systems alone, such as linux/amd64,windows/amd64, for a trial")
	flag.StringVar(&r.certificates, "certificates", debianAuthorities,
		"what the image trusts: a folder of .crt files, or one file")
	flag.Parse()
	r.systems = slices.DeleteFunc(slices.Clone(systems), func(s system) bool {
		return only != "" && !slices.Contains(strings.Split(only, ","), s.String())
	})
	if err := r.make(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// A release is one run of this command.
type release struct {
	root, out, version, certificates string
	systems                          []system

	commit string
	at     time.Time // of the commit
	work   string    // a folder for what goes into several files
	cache  string    // of the compiler; empty: this machine's

	authorities []byte // what the image trusts; none where there are no certificates
}

func (r *release) make() (err error) {
	if len(r.systems) == 0 {
		return fmt.Errorf("-only: want one of %v", systems)
	}
	for _, path := range []*string{&r.root, &r.out} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if err := r.identify(); err != nil {
		return err
	}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "release"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	if r.authorities, err = readAuthorities(r.certificates); err != nil {
		return err
	}
	for _, step := range []func() error{r.build, r.pages, r.archives, r.chart, r.packages, r.image, r.bill,
		r.provenance, r.sums} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Printf("%s of %s is in %s\n", r.version, r.commit, r.out)
	return nil
}

// identify reads commit, its time and the version, and refuses a checkout with changes.
func (r *release) identify() error {
	changes, err := run(r.root, nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" {
		return errors.New("the checkout has changes: a release is of a commit")
	}
	if r.commit, err = run(r.root, nil, "git", "rev-parse", "HEAD"); err != nil {
		return err
	}
	seconds, err := run(r.root, nil, "git", "show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("time of the commit: %w", err)
	}
	r.at = time.Unix(n, 0).UTC()
	if r.version == "" {
		if r.version, err = run(r.root, nil, "git", "describe", "--tags", "--always"); err != nil {
			return err
		}
	}
	if !strings.HasPrefix(r.version, "v") {
		r.version = "v0.0.0-" + r.version
	}
	return nil
}

// number is the version without its v, as packages have it.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

// name returns the name of a file of the release.
func (r *release) name(suffix string) string {
	return filepath.Join(r.out, "panlearn_"+r.number()+"_"+suffix)
}

// its are the variables that a build sets.
const its = "github.com/panlearn/panlearn/internal/build."

// flags are the settings of every build. They name no folder of the machine.
func (r *release) flags() []string {
	return []string{"-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid= -X " + its + "version=" + r.version + " -X " + its + "revision=" + r.commit}
}

// bin is the folder of a system's programs.
func (r *release) bin(s system) string { return filepath.Join(r.work, s.os+"_"+s.arch) }

func (s system) program(name string) string {
	if s.os == "windows" {
		return name + ".exe"
	}
	return name
}

// build compiles the programs for each system.
func (r *release) build() error {
	for _, s := range r.systems {
		for _, p := range programs {
			args := append(append([]string{"build"}, r.flags()...), "-o", filepath.Join(r.bin(s), s.program(p)), "./cmd/"+p)
			env := s.environment()
			if r.cache != "" {
				env = append(env, "GOCACHE="+r.cache)
			}
			if _, err := run(r.root, env, "go", args...); err != nil {
				return err
			}
		}
		fmt.Println("built", s)
	}
	return nil
}

func (s system) environment() []string {
	return []string{"CGO_ENABLED=0", "GOOS=" + s.os, "GOARCH=" + s.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=",
		"GOWORK=off",
		"GOEXPERIMENT="}
}

// pages writes manual pages and completions, which the programs know themselves.
func (r *release) pages() error {
	host := system{runtime.GOOS, runtime.GOARCH}
	for _, p := range programs {
		program := filepath.Join(r.bin(host), host.program(p))
		if _, err := os.Stat(program); err != nil {
			return fmt.Errorf("manual pages are written by the programs of this machine, %v, which is not built: %w", host, err)
		}
		date := []string{"SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.at.Unix(), 10)}
		if _, err := run(r.work, date, program, "man", filepath.Join(r.work, "man1")); err != nil {
			return err
		}
		for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
			text, err := run(r.work, nil, program, "completion", shell)
			if err != nil {
				return err
			}
			path := filepath.Join(r.work, "completions", shell, p)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// bill writes the software bill of materials of each program, read out of the program itself: its modules, with
// checksums and the licences that are in the cache of modules, in which the build has put them, checked by go.sum. It
// asks no proxy and no database of sums: what one says of the version that is made here changes when it is published.
func (r *release) bill() error {
	tool := filepath.Join(r.work, "cyclonedx-gomod")
	if _, err := run(".", nil, "go", "build", "-o", tool,
		"github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod"); err != nil {
		return err
	}
	for _, p := range programs {
		_, err := run(".", []string{"GOPROXY=off", "GOSUMDB=off"}, tool, "bin", "-json", "-noserial", "-notimestamp",
			"-licenses",
			"-std", "-version", r.version, "-output", r.name("sbom_"+p+".cdx.json"),
			filepath.Join(r.bin(r.systems[0]), r.systems[0].program(p)))
		if err != nil {
			return err
		}
	}
	return nil
}

func sum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// sums writes the checksums of all files, as sha256sum does.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, e := range entries {
		s, err := sum(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", s, e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(lines.String()), 0o644)
}

// run runs a command in a folder and returns what it prints on its standard output.
func run(dir string, env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Env, c.Stderr = dir, append(os.Environ(), env...), os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}
