package model

import (
	"archive/zip"
	"bytes"
	"encoding/hex"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestNPYBytes: the bytes are those that NumPy 1.24 writes by numpy.save for the same arrays.
func TestNPYBytes(t *testing.T) {
	const (
		magic  = "934e554d505901007600" // version 1.0, header of 118 bytes
		common = "{'descr': '<f8', 'fortran_order': False, 'shape': "
	)
	header := func(shape string) string {
		text := common + shape + ", }"
		return magic + hex.EncodeToString([]byte(text+strings.Repeat(" ", 117-len(text))+"\n"))
	}
	for _, c := range []struct {
		data  []float64
		shape []int
		want  string
	}{
		{[]float64{1.5}, nil, header("()") + "000000000000f83f"},
		{[]float64{1, -2}, []int{2}, header("(2,)") + "000000000000f03f" + "00000000000000c0"},
		{[]float64{1, -2}, []int{1, 2}, header("(1, 2)") + "000000000000f03f" + "00000000000000c0"},
	} {
		got := appendNPY(nil, c.data, c.shape...)
		if hex.EncodeToString(got) != c.want {
			t.Errorf("shape %v:\n%x, want\n%s", c.shape, got, c.want)
		}
		data, shape, err := parseNPY(got)
		if err != nil || !slices.Equal(data, c.data) || !slices.Equal(shape, c.shape) {
			t.Errorf("shape %v: read back %v %v, %v", c.shape, data, shape, err)
		}
	}
}

// TestNPYRefused: what is no array of ours is an error.
func TestNPYRefused(t *testing.T) {
	good := string(appendNPY(nil, []float64{1, 2}, 2))
	for name, bad := range map[string]string{
		"empty":         "",
		"magic":         "x" + good[1:],
		"version":       good[:6] + "\x02" + good[7:],
		"short header":  good[:50],
		"short data":    good[:len(good)-1],
		"long data":     good + "12345678",
		"single floats": strings.Replace(good, "<f8", "<f4", 1),
		"big-endian":    strings.Replace(good, "<f8", ">f8", 1),
		"Fortran order": strings.Replace(good, "False", "True ", 1),
		"other shape":   strings.Replace(good, "(2,)", "(3,)", 1),
		"huge shape":    strings.Replace(good, "(2,), }    ", "(4294967296, 4294967296), }", 1),
	} {
		if bad == good {
			t.Fatalf("%s is not bad", name)
		}
		if _, _, err := parseNPY([]byte(bad)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestNumPyIsReadBack: a container holds the whole snapshot, to the last bit, and the statement as readable text.
func TestNumPyIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, theta := drawTask(t)
		snapshot, _ := released(t, spec, theta...)
		data, err := snapshot.NumPy()
		if err != nil {
			t.Fatal(err)
		}
		again, err := snapshot.NumPy()
		if err != nil || !bytes.Equal(data, again) {
			t.Fatalf("written twice, it differs: %v", err)
		}
		back, err := Parse(data)
		if err != nil || !bytes.Equal(encoded(t, back), encoded(t, snapshot)) {
			t.Fatalf("%s became %s: %v", encoded(t, snapshot), encoded(t, back), err)
		}
		for k, row := range snapshot.Weights {
			for j := range row {
				if math.Float64bits(row[j]) != math.Float64bits(back.Weights[k][j]) {
					t.Fatalf("weight %d of row %d: %v became %v", j, k, row[j], back.Weights[k][j])
				}
			}
		}
		archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		file, err := archive.Open("metadata.json")
		if err != nil {
			t.Fatal(err)
		}
		about, err := io.ReadAll(file)
		if err != nil || !strings.Contains(string(about), `"epsilon": 1,`) || strings.Contains(string(about), `"weights"`) {
			t.Fatalf("metadata.json: %s, %v", about, err)
		}
	})
}

// FuzzParse: whatever a file holds, it is a snapshot or an error.
func FuzzParse(f *testing.F) {
	s, _ := released(f, parsed(f, words), 1, 2, 3, 4)
	data, err := s.NumPy()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(encoded(f, s))
	f.Add([]byte(zipMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			return
		}
		if p, err := NewPredictor(s, ""); err == nil && len(p.Theta) != p.Loss.Parameters(p.Features.Dim()) {
			t.Errorf("%d parameters of %d features", len(p.Theta), p.Features.Dim())
		}
	})
}
