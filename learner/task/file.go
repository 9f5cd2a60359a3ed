package task

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A File is a file that belongs to a task. A task file contains its path, relative to the task file's folder; a
// declaration, and a Spec that Load returned, contain its SHA-256.
type File struct {
	name string
	hash string // "sha256:" and 64 hexadecimal digits; "" before the file was read
	data []byte // the contents; nil if only the hash is known
}

const (
	hashPrefix  = "sha256:"
	maxSnapshot = 256 << 20
)

// Hash returns the SHA-256 of the file, or false if the file has not been read.
func (f *File) Hash() (out [sha256.Size]byte, known bool) {
	n, err := hex.Decode(out[:], []byte(strings.TrimPrefix(f.hash, hashPrefix)))
	return out, f.hash != "" && err == nil && n == len(out)
}

// Data returns the contents of the file; nil if only the hash is known. The caller must not change them.
func (f *File) Data() []byte { return f.data }

// UnmarshalText accepts the name of a file, or a hash.
func (f *File) UnmarshalText(text []byte) error {
	rest, hashed := strings.CutPrefix(string(text), hashPrefix)
	switch {
	case !hashed && len(text) > 0:
		*f = File{name: string(text)}
		return nil
	case hashed && len(rest) == 2*sha256.Size && rest == strings.ToLower(rest):
		if _, err := hex.DecodeString(rest); err == nil {
			*f = File{hash: string(text)}
			return nil
		}
	}
	return errors.New("the name of a file, or sha256: and 64 hexadecimal digits")
}

// MarshalText returns the hash, by which a declaration names a file.
func (f *File) MarshalText() ([]byte, error) {
	if f.hash == "" {
		return nil, fmt.Errorf("%s has not been read", shorten(f.name))
	}
	return []byte(f.hash), nil
}

// read reads the file, whose path is relative to the folder, of at most most bytes.
func (f *File) read(folder string, most int64) error {
	if f.name == "" {
		return nil
	}
	path := f.name
	if !filepath.IsAbs(path) {
		path = filepath.Join(folder, path)
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() > most {
		err = fmt.Errorf("%d bytes, want at most %d", info.Size(), most)
	}
	if err == nil {
		f.data, err = os.ReadFile(path)
	}
	if err != nil {
		return err
	}
	f.hash = hashText(f.data)
	return nil
}

func hashText(data []byte) string {
	sum := sha256.Sum256(data)
	return hashPrefix + hex.EncodeToString(sum[:])
}

// sameFile reports whether two declarations name the same file, or none.
func sameFile(one, other *File) bool {
	if one == nil || other == nil {
		return one == other
	}
	return one.name == other.name && one.hash == other.hash
}

// readFiles reads the files that a task file in the folder names, and validates the declaration with them.
func (s *Spec) readFiles(folder string) error {
	if f := s.Model.Start; f != nil {
		if err := f.read(folder, maxSnapshot); err != nil {
			return refuse("model.start", f.name, "a snapshot in JSON or .npz: %v", err)
		}
	}
	p := s.Features.Public
	if p == nil {
		return nil
	}
	if err := p.read(folder, MaxPublic); err != nil {
		return refuse(publicPath, p.name, "a public model in JSON: %v", err)
	}
	if p.data == nil {
		return nil
	}
	var err error
	if p.model, err = parsePublic(p.data); err != nil {
		return err
	}
	return s.Validate()
}

// Moved returns the overrides with which a copy of the task file, in another folder, names the same files.
func (s *Spec) Moved(from, to string) (sets []string, err error) {
	if from, err = filepath.Abs(from); err != nil {
		return nil, err
	}
	if to, err = filepath.Abs(to); err != nil || from == to {
		return nil, err
	}
	for _, named := range []struct {
		key  string
		file *File
	}{{"model.start", s.Model.Start}, {publicPath, s.Features.Public.file()}} {
		if named.file == nil || named.file.name == "" || filepath.IsAbs(named.file.name) {
			continue
		}
		path, err := filepath.Rel(to, filepath.Join(from, named.file.name))
		if err != nil {
			return nil, err
		}
		sets = append(sets, named.key+"="+strconv.Quote(path))
	}
	return sets, nil
}

// WithPublic returns a copy of the declaration with the file of its public model, which must have the declared hash. If
// the declaration has no public model, the file must be empty.
func (s *Spec) WithPublic(file []byte) (*Spec, error) {
	p := s.Features.Public
	switch {
	case p == nil && len(file) == 0:
		return s, nil
	case p == nil:
		return nil, refuse(publicPath, "", "no file of a public model: the task declares none")
	case len(file) == 0:
		return nil, p.absent()
	case len(file) > MaxPublic || hashText(file) != p.hash:
		return nil, refuse(publicPath, p.hash, "the file with this SHA-256, not one of %d bytes with another", len(file))
	}
	model, err := parsePublic(file)
	if err != nil {
		return nil, err
	}
	out := *s
	out.Features.Public = &Public{File: File{hash: p.hash, data: file}, model: model}
	if err := out.Validate(); err != nil {
		return nil, err
	}
	return &out, nil
}

// A Public is the file of a PublicModel.
type Public struct {
	File
	model *PublicModel // nil if only the hash is known
}

// Model returns the public model; nil without one, and if only its hash is known. The caller must not change it.
func (p *Public) Model() *PublicModel {
	if p == nil {
		return nil
	}
	return p.model
}

// Data returns the file of the public model; nil without one, and if only its hash is known. The caller must not change
// it.
func (p *Public) Data() []byte {
	if p == nil {
		return nil
	}
	return slices.Clip(p.data)
}

// absent returns an error if only the hash of the public model is known.
func (p *Public) absent() error {
	return refuse(publicPath, p.hash, "the file of the public model too: its hash alone does not say what to compute")
}

// unread reports whether the declared coordinates are unknown because the public model has not been read.
func (f *Features) unread() bool { return f.Public != nil && f.Public.model == nil }

// file returns the file of a public model, or nil.
func (p *Public) file() *File {
	if p == nil {
		return nil
	}
	return &p.File
}

// standIn replaces the hashes of the declaration's files by a placeholder.
func (s *Spec) standIn() {
	none := File{hash: hashText(nil)}
	if s.Model.Start != nil {
		s.Model.Start = &none
	}
	if s.Features.Public != nil {
		s.Features.Public = &Public{File: none}
	}
}
