package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// image writes the image of all Linux architectures as a tar of an OCI layout.
func (r *release) image() error {
	folder := filepath.Join(r.work, "image")
	all := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, s := range r.systems {
		if s.os != "linux" {
			continue
		}
		img, err := r.imageOf(s)
		if err != nil {
			return err
		}
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: s.os, Architecture: s.arch}}})
	}
	at, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	name := map[string]string{"org.opencontainers.image.ref.name": r.number()}
	if err := at.AppendIndex(all, layout.WithAnnotations(name)); err != nil {
		return err
	}
	entries, err := tree(folder, "")
	if err != nil {
		return err
	}
	f, err := os.Create(r.name("oci.tar"))
	if err != nil {
		return err
	}
	defer f.Close()
	return writeTar(f, entries, r.at)
}

// imageOf returns the image of one architecture: the same files as deploy/Dockerfile puts into its own.
func (r *release) imageOf(s system) (v1.Image, error) {
	entries, err := r.binaries(s, "usr/local/bin")
	if err != nil {
		return nil, err
	}
	tasks, err := tree(filepath.Join(r.root, "deploy/tasks"), "etc/panlearn/tasks")
	if err != nil {
		return nil, err
	}
	entries = append(entries, tasks...)
	if r.authorities != nil {
		entries = append(entries, entry{name: "etc/ssl/certs/ca-certificates.crt", data: r.authorities, mode: 0o644})
	}
	var data bytes.Buffer
	if err := writeTar(&data, entries, r.at); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1), layer)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = s.os, s.arch, v1.Time{Time: r.at}
	config.Config = v1.Config{User: "65532:65532", Env: []string{"PATH=/usr/local/bin"}, Cmd: []string{"learner", "--help"},
		Labels: map[string]string{"org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.commit,
			"org.opencontainers.image.source":   "https://github.com/panlearn/panlearn",
			"org.opencontainers.image.licenses": "Apache-2.0"}}
	for i := range config.History {
		config.History[i].Created = v1.Time{Time: r.at}
	}
	return mutate.ConfigFile(img, config)
}
