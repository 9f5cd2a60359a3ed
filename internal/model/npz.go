package model

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Entries of the .npz container, which is a zip archive. NumPy shows the arrays without their ending.
const (
	npzWeights   = "weights.npy"
	npzIntercept = "intercept.npy"
	npzMetadata  = "metadata.json"
)

// zipMagic is how every zip archive with an entry begins.
const zipMagic = "PK\x03\x04"

// maxEntry bounds an entry of a container that is read.
const maxEntry = 1 << 30

// A metadata is a snapshot without its numbers: the two fields hide those of Snapshot.
type metadata struct {
	Snapshot
	Weights   *struct{} `json:"weights,omitempty"`
	Intercept *struct{} `json:"intercept,omitempty"`
}

// NumPy is the model as a .npz container, which numpy.load opens: the arrays weights, of shape (d,) or (k, d), and intercept,
// of shape () or (k,), and the rest of the snapshot, privacy statement included, as metadata.json. Equal snapshots give equal bytes.
func (s Snapshot) NumPy() ([]byte, error) {
	if len(s.Weights) == 0 || len(s.Weights) != len(s.Intercept) {
		return nil, fmt.Errorf("export to NumPy: %d rows of weights and %d intercepts, want as many and at least one", len(s.Weights), len(s.Intercept))
	}
	shape := []int{len(s.Weights), len(s.Features)}
	for _, row := range s.Weights {
		if len(row) != len(s.Features) {
			return nil, fmt.Errorf("export to NumPy: %d weights for %d features", len(row), len(s.Features))
		}
	}
	drop := 0
	if len(s.Weights) == 1 {
		drop = 1
	}
	about, err := plainJSON(metadata{Snapshot: s}, "  ")
	if err != nil {
		return nil, fmt.Errorf("export to NumPy: %w", err)
	}
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, entry := range []struct {
		name string
		data []byte
	}{
		{npzWeights, appendNPY(nil, slices.Concat(s.Weights...), shape[drop:]...)},
		{npzIntercept, appendNPY(nil, s.Intercept, shape[drop:1]...)},
		{npzMetadata, about},
	} {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: entry.name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(entry.data)
		}
		if err != nil {
			return nil, fmt.Errorf("export to NumPy: %w", err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("export to NumPy: %w", err)
	}
	return out.Bytes(), nil
}

// plainJSON leaves <, > and & as they are.
func plainJSON(v any, indent string) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// parseNumPy reads what NumPy writes.
func parseNumPy(data []byte) (Snapshot, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Snapshot{}, fmt.Errorf("model: not a snapshot in a .npz container: %w", err)
	}
	about, err := readEntry(archive, npzMetadata)
	if err != nil {
		return Snapshot{}, err
	}
	s, err := parseJSON(about)
	if err != nil {
		return Snapshot{}, err
	}
	weights, shape, err := readArray(archive, npzWeights)
	if err != nil {
		return Snapshot{}, err
	}
	if s.Intercept, _, err = readArray(archive, npzIntercept); err != nil {
		return Snapshot{}, err
	}
	s.Weights = nil
	switch len(shape) {
	case 1:
		s.Weights = Rows{weights}
	case 2:
		for i := range shape[0] {
			s.Weights = append(s.Weights, weights[i*shape[1]:(i+1)*shape[1]])
		}
	default:
		return Snapshot{}, fmt.Errorf("model: %s has %d dimensions, want 1 or 2", npzWeights, len(shape))
	}
	return s, nil
}

func readArray(archive *zip.Reader, name string) ([]float64, []int, error) {
	file, err := readEntry(archive, name)
	if err != nil {
		return nil, nil, err
	}
	data, shape, err := parseNPY(file)
	if err != nil {
		return nil, nil, fmt.Errorf("model: %s: %w", name, err)
	}
	return data, shape, nil
}

func readEntry(archive *zip.Reader, name string) ([]byte, error) {
	file, err := archive.Open(name)
	if err != nil {
		return nil, fmt.Errorf("model: no %s in the container", name)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxEntry+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("model: %s: %w", name, err)
	}
	if len(data) > maxEntry {
		return nil, fmt.Errorf("model: %s: longer than %d bytes", name, maxEntry)
	}
	return data, nil
}
