package model

import (
	"encoding/json"
	"fmt"

	"github.com/panlearn/panlearn/learner/task"
)

// MaxFile bounds the file of a model that is read, in bytes, and its metadata where they are packed.
const MaxFile = 256 << 20

// maxDeclaration bounds the declaration of a model, in bytes: the largest task file, written out.
const maxDeclaration = 16 << 20

// A document is a snapshot in JSON with its long parts not decoded yet: each field hides Snapshot's field. If a key
// occurs twice the last one counts.
type document struct {
	Snapshot
	Weights     json.RawMessage `json:"weights"`
	Intercept   json.RawMessage `json:"intercept"`
	Features    json.RawMessage `json:"features"`
	Classes     json.RawMessage `json:"classes"`
	Declaration json.RawMessage `json:"declaration"`
}

// A size bounds how many values a model has: as many as its declaration needs. Nothing longer is decoded, so
// that a small file cannot take much memory.
type size struct{ features, scores int }

func parseJSON(data []byte) (Snapshot, size, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return Snapshot{}, size{}, fmt.Errorf("model: not a snapshot in JSON: %w", err)
	}
	s := d.Snapshot
	if s.FormatVersion != Version {
		return Snapshot{}, size{}, fmt.Errorf("model: format_version %d, this program reads %d: use the program that wrote it or a newer one", s.FormatVersion, Version)
	}
	s.Declaration = d.Declaration
	n, err := needOf(s.Declaration, s.PublicModel)
	if err != nil {
		return Snapshot{}, size{}, err
	}
	for _, part := range []struct {
		name        string
		doc         json.RawMessage
		depth, most int
		into        any
	}{
		{"features", d.Features, 1, n.features, &s.Features},
		{"classes", d.Classes, 1, n.scores + 1, &s.Classes}, // two of one score
		{"weights", d.Weights, 2, n.features * n.scores, &s.Weights},
		{"intercepts", d.Intercept, 1, n.scores, &s.Intercept},
	} {
		has, null := elements(part.doc, part.depth)
		if has > part.most {
			return Snapshot{}, size{}, fmt.Errorf("model: %d %s, its declaration has at most %d", has, part.name, part.most)
		}
		if null {
			return Snapshot{}, size{}, fmt.Errorf("model: %s: null, want a value", part.name)
		}
		if len(part.doc) == 0 {
			continue
		}
		if err := json.Unmarshal(part.doc, part.into); err != nil {
			return Snapshot{}, size{}, fmt.Errorf("model: not a snapshot in JSON: %s: %w", part.name, err)
		}
	}
	return s, n, nil
}

// needOf returns the size of the models of a declaration. An intercept counts as a feature.
func needOf(declaration, public []byte) (size, error) {
	if len(declaration) > maxDeclaration {
		return size{}, fmt.Errorf("model: declaration: %d bytes, want at most %d", len(declaration), maxDeclaration)
	}
	spec, err := task.ParseDeclaration(declaration)
	if err == nil {
		spec, err = spec.WithPublic(public)
	}
	if err != nil {
		return size{}, fmt.Errorf("model: declaration: %w", err)
	}
	features, err := spec.Compile()
	if err != nil {
		return size{}, fmt.Errorf("model: %w", err)
	}
	return size{features.Dim(), features.Outputs()}, nil
}

// elements returns how many values the lists and objects of valid JSON have down to a depth, 1 being the outermost: one
// more than there are commas, for an empty list too. null reports whether one of them is null, which would decode to a
// zero.
func elements(doc []byte, depth int) (n int, null bool) {
	level, quoted := 0, false
	n = 1
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			level++
		case c == ']' || c == '}':
			level--
		case c == ',' && level <= depth:
			n++
		case c == 'n' && level <= depth: // nothing else begins with it
			null = true
		}
	}
	return n, null
}
