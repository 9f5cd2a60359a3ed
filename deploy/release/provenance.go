package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// debianAuthorities is the folder in which Debian's package ca-certificates has the authorities of Mozilla's list, one a
// file. The bundle that the machine itself trusts has those of its own administrators, too.
const debianAuthorities = "/usr/share/ca-certificates/mozilla"

// readAuthorities returns the certificates for the image, of a folder or a file. Without any it prints that, and the
// image trusts no public authority.
func readAuthorities(from string) (authorities []byte, err error) {
	files := []string{from}
	info, err := os.Stat(from)
	if os.IsNotExist(err) {
		fmt.Printf("NOT IN THE IMAGE: certificates of public authorities: no %s; on Debian the package ca-certificates has it\n", from)
		return nil, nil
	}
	if err == nil && info.IsDir() {
		files, err = filepath.Glob(filepath.Join(from, "*.crt")) // in the order of their names
	}
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(data, []byte("-----BEGIN CERTIFICATE-----")) {
			return nil, fmt.Errorf("%s: want certificates in PEM", file)
		}
		authorities = append(append(authorities, bytes.TrimSpace(data)...), '\n')
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no .crt file", from)
	}
	return authorities, nil
}

// An origin holds what a release was made of, by what.
type origin struct {
	Version      string    `json:"version"`
	Commit       string    `json:"commit"`
	Time         time.Time `json:"commit_time"`
	Source       string    `json:"source"`
	Command      string    `json:"command"`
	Go           string    `json:"go"`
	Flags        []string  `json:"build_flags"`
	Tools        string    `json:"release_go_sum_sha256"` // of the packagers' modules
	Certificates *trusted  `json:"certificates"`          // null: the image has none
	Programs     []binary  `json:"programs"`
	Modules      []module  `json:"modules"` // of all programs
}

// A trusted names the certificates in the image.
type trusted struct {
	From    string `json:"from"`
	Package string `json:"package,omitempty"` // of Debian, where it is one of its
	SHA256  string `json:"sha256"`
}

// A binary is a program of a system.
type binary struct {
	Program     string   `json:"program"`
	System      string   `json:"system"`
	SHA256      string   `json:"sha256"`
	Environment []string `json:"environment"`
	Command     string   `json:"command"`
}

// A module is linked into a program.
type module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum"` // as in go.sum
}

// provenance writes down what was built from what, by what. It reads the modules out of the programs themselves.
func (r *release) provenance() error {
	version, err := run(r.root, nil, "go", "env", "GOVERSION")
	if err != nil {
		return err
	}
	tools, err := sum(filepath.Join(r.root, "deploy/release/go.sum"))
	if err != nil {
		return err
	}
	out := origin{Version: r.version, Commit: r.commit, Time: r.at, Source: "https://github.com/panlearn/panlearn",
		Command: "make release VERSION=" + r.version, Go: version, Flags: r.flags(), Tools: tools}
	if r.authorities != nil {
		digest := sha256.Sum256(r.authorities)
		out.Certificates = &trusted{From: r.certificates, Package: packageOf(r.certificates), SHA256: hex.EncodeToString(digest[:])}
	}
	seen := map[module]bool{}
	for _, s := range r.systems {
		for _, p := range programs {
			file := filepath.Join(r.bin(s), s.program(p))
			digest, err := sum(file)
			if err != nil {
				return err
			}
			out.Programs = append(out.Programs, binary{Program: s.program(p), System: s.String(), SHA256: digest,
				Environment: s.environment(), Command: "go build -o " + s.program(p) + " ./cmd/" + p})
			info, err := buildinfo.ReadFile(file)
			if err != nil {
				return err
			}
			for _, m := range info.Deps {
				if m.Replace != nil {
					m = m.Replace
				}
				if one := (module{m.Path, m.Version, m.Sum}); !seen[one] {
					seen[one] = true
					out.Modules = append(out.Modules, one)
				}
			}
		}
	}
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(r.name("provenance.json"), append(data, '\n'), 0o644)
}

// packageOf returns the package that a folder of certificates is of, with its version; empty where nothing tells.
func packageOf(folder string) string {
	if folder != debianAuthorities {
		return ""
	}
	out, err := exec.Command("dpkg-query", "-W", "-f", "${Package} ${Version}", "ca-certificates").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
