package main

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// afterInstall makes the users of the roles and has systemd read the units. It starts nothing. DPKG_ROOT is set where dpkg
// installs below another root.
const afterInstall = `#!/bin/sh
set -e
if command -v systemd-sysusers >/dev/null; then systemd-sysusers ${DPKG_ROOT:+--root="$DPKG_ROOT"} panlearn.conf; fi
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
`

// afterRemoval has systemd forget the units. Users stay: their files may.
const afterRemoval = `#!/bin/sh
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
`

// packages writes a Debian and an RPM package for each Linux.
func (r *release) packages() error {
	scripts := nfpm.Scripts{PostInstall: filepath.Join(r.work, "after-install"), PostRemove: filepath.Join(r.work, "after-removal")}
	for file, text := range map[string]string{scripts.PostInstall: afterInstall, scripts.PostRemove: afterRemoval} {
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			return err
		}
	}
	for _, s := range r.systems {
		if s.os != "linux" {
			continue
		}
		entries, err := r.installed(s)
		if err != nil {
			return err
		}
		contents, err := r.laid(entries)
		if err != nil {
			return err
		}
		for _, kind := range []string{"deb", "rpm"} {
			info := nfpm.WithDefaults(&nfpm.Info{
				Name: "panlearn", Arch: s.arch, Platform: "linux", Version: r.number(), Release: "1", MTime: r.at,
				Maintainer: "The panlearn project <panlearn@invalid>", License: "Apache-2.0", Section: "science",
				Homepage:    "https://github.com/panlearn/panlearn",
				Description: "learning from people's events without collecting them: devices, shuffle stage, learner",
				Overridables: nfpm.Overridables{Contents: contents, Scripts: scripts,
					RPM: nfpm.RPM{BuildHost: "panlearn", Group: "Applications/Engineering"}},
			})
			packager, err := nfpm.Get(kind)
			if err != nil {
				return err
			}
			f, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(info)))
			if err != nil {
				return err
			}
			defer f.Close()
			if err := packager.Package(info, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// installed returns the files of a package at their places on the machine.
func (r *release) installed(s system) ([]entry, error) {
	entries, err := r.binaries(s, "/usr/bin")
	if err != nil {
		return nil, err
	}
	where := below("/usr/share/panlearn")
	for from, to := range map[string]string{"deploy/systemd": "/usr/lib/systemd/system", "made:man1": "/usr/share/man/man1",
		"LICENSE":               "/usr/share/doc/panlearn/copyright",
		"made:completions/bash": "/usr/share/bash-completion/completions",
		"made:completions/zsh":  "/usr/share/zsh/site-functions",
		"made:completions/fish": "/usr/share/fish/vendor_completions.d"} {
		where[from] = to
	}
	more, err := r.shared(where)
	if err != nil {
		return nil, err
	}
	for _, e := range more {
		switch {
		case strings.HasSuffix(e.name, ".sysusers"):
			e.name = "/usr/lib/sysusers.d/panlearn.conf"
		case strings.HasPrefix(e.name, "/usr/lib/systemd/"):
			e.data = bytes.ReplaceAll(e.data, []byte("/usr/local/bin/"), []byte("/usr/bin/"))
		case strings.HasSuffix(e.name, ".1"):
			e.name += ".gz"
			if e.data, err = gzipped(e.data); err != nil {
				return nil, err
			}
		case strings.Contains(e.name, "/zsh/"):
			e.name, e.only = path.Dir(e.name)+"/_"+path.Base(e.name), "rpm"
			entries = append(entries, entry{"/usr/share/zsh/vendor-completions/" + path.Base(e.name), e.data, e.mode, "deb"})
		case strings.Contains(e.name, "/fish/"):
			e.name += ".fish"
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// laid writes entries into files, which packagers read them from.
func (r *release) laid(entries []entry) (files.Contents, error) {
	var contents files.Contents
	folder, err := os.MkdirTemp(r.work, "package")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		at := filepath.Join(folder, e.name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(at, e.data, e.mode); err != nil {
			return nil, err
		}
		contents = append(contents, &files.Content{Source: at, Destination: e.name, Packager: e.only,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: e.mode, MTime: r.at}})
	}
	return contents, nil
}
