package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// An entry is a file of an archive, a package or an image.
type entry struct {
	name string // with slashes, below the root of the archive or of the machine
	data []byte
	mode fs.FileMode
	only string // the kind of package that it is in; empty: all
}

// read returns the file at a path as an entry.
func read(from, name string, mode fs.FileMode) (entry, error) {
	data, err := os.ReadFile(from)
	return entry{name: name, data: data, mode: mode}, err
}

// tree returns the files of a folder as entries below a name, in their order, without what its tests alone read.
func tree(folder, name string) (out []entry, err error) {
	err = filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "testdata" {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		inside, err := filepath.Rel(folder, p)
		if err != nil {
			return err
		}
		e, err := read(p, path.Join(name, filepath.ToSlash(inside)), 0o644)
		out = append(out, e)
		return err
	})
	return out, err
}

// binaries returns a system's programs as entries in a folder.
func (r *release) binaries(s system, folder string) (out []entry, err error) {
	for _, p := range programs {
		e, err := read(filepath.Join(r.bin(s), s.program(p)), path.Join(folder, s.program(p)), 0o755)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// shared returns what is beside the programs: names are those below where.
func (r *release) shared(where map[string]string) (out []entry, err error) {
	for _, folder := range slices.Sorted(func(yield func(string) bool) {
		for f := range where {
			if !yield(f) {
				return
			}
		}
	}) {
		from := filepath.Join(r.root, folder)
		if rest, made := strings.CutPrefix(folder, "made:"); made {
			from = filepath.Join(r.work, rest)
		}
		if info, err := os.Stat(from); err != nil {
			return nil, err
		} else if !info.IsDir() {
			e, err := read(from, where[folder], 0o644)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
			continue
		}
		entries, err := tree(from, where[folder])
		if err != nil {
			return nil, err
		}
		out = append(out, entries...)
	}
	return out, nil
}

// texts are in every archive and package: what the documents name, at the place where they name it.
var texts = []string{"README.md", "CHANGELOG.md", "SECURITY.md", "docs", "deploy/tasks", "deploy/nats",
	"deploy/policy.yaml", "deploy/compose.production.yaml",
	"deploy/prometheus", "deploy/grafana", "deploy/kubernetes", "deploy/helm/README.md", "deploy/helm/panlearn",
	"deploy/helm/values"}

// below returns the texts with their places below a folder.
func below(folder string) map[string]string {
	out := map[string]string{}
	for _, t := range texts {
		out[t] = path.Join(folder, t)
	}
	return out
}

// chart writes the chart with the version in it, as helm package does.
func (r *release) chart() error {
	entries, err := tree(filepath.Join(r.root, "deploy/helm/panlearn"), "panlearn")
	if err != nil {
		return err
	}
	for i := range entries {
		if entries[i].name == "panlearn/Chart.yaml" {
			entries[i].data = versioned.ReplaceAll(entries[i].data, []byte(`$1: "`+r.number()+`"`))
		}
	}
	f, err := os.Create(r.name("chart.tgz"))
	if err != nil {
		return err
	}
	defer f.Close()
	return writeTarball(f, entries, r.at)
}

// versioned finds the two versions of a Chart.yaml.
var versioned = regexp.MustCompile(`(?m)^(version|appVersion):.*$`)

// archives writes one archive a system. It has the programs in bin/, and all else where the checkout has it, so that
// commands and links of the documents work.
func (r *release) archives() error {
	top := "panlearn-" + r.number()
	where := below(top)
	for from, to := range map[string]string{"LICENSE": "LICENSE", "deploy/systemd": "deploy/systemd", "made:man1": "man1",
		"made:completions": "completions"} {
		where[from] = path.Join(top, to)
	}
	shared, err := r.shared(where)
	if err != nil {
		return err
	}
	for _, s := range r.systems {
		entries, err := r.binaries(s, top+"/bin")
		if err != nil {
			return err
		}
		entries = append(entries, shared...)
		write, suffix := writeTarball, "tar.gz"
		if s.os == "windows" {
			write, suffix = writeZip, "zip"
		}
		f, err := os.Create(r.name(s.os + "_" + s.arch + "." + suffix))
		if err != nil {
			return err
		}
		defer f.Close()
		if err := write(f, entries, r.at); err != nil {
			return err
		}
	}
	return nil
}

// writeTarball writes entries of one time as a tar that is compressed by gzip.
func writeTarball(w io.Writer, entries []entry, at time.Time) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := writeTar(compressed, entries, at); err != nil {
		return err
	}
	return compressed.Close()
}

func writeTar(w io.Writer, entries []entry, at time.Time) error {
	out := tar.NewWriter(w)
	for _, e := range entries {
		if err := out.WriteHeader(&tar.Header{Name: e.name, Mode: int64(e.mode), Size: int64(len(e.data)), ModTime: at,
			Format: tar.FormatPAX}); err != nil {
			return err
		}
		if _, err := out.Write(e.data); err != nil {
			return err
		}
	}
	return out.Close()
}

func writeZip(w io.Writer, entries []entry, at time.Time) error {
	out := zip.NewWriter(w)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		h.SetMode(e.mode)
		f, err := out.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(e.data); err != nil {
			return err
		}
	}
	return out.Close()
}

// gzipped compresses as manual pages are.
func gzipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
