package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Canonical returns the one encoding of the declaration, which goes into the task hash: JSON without blanks, keys in
// the order of the types, defaults written out, numbers in their shortest exact form. It fails on a Spec that
// Validate refuses.
func (s *Spec) Canonical() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return nil, fmt.Errorf("encode task: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// ParseCanonical is the inverse of Canonical. It accepts exactly the bytes that Canonical writes: anything else, even
// another spelling of the same declaration, is an error, so that a task hash has one preimage.
func ParseCanonical(data []byte) (*Spec, error) {
	s, err := ParseDeclaration(data)
	if err != nil {
		return nil, err
	}
	again, err := s.Canonical()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, data) {
		return nil, fmt.Errorf("decode task: not in canonical form")
	}
	return s, nil
}

// ParseDeclaration reads the canonical form after another JSON document has carried it, and may have laid it out or
// escaped it anew: a snapshot, for example. Where the bytes are signed or hashed, use ParseCanonical.
func ParseDeclaration(data []byte) (*Spec, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	s := new(Spec)
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("decode task: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("decode task: bytes after the declaration")
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s, nil
}

// CanonicalFor is Canonical in the terms of a task that stands, by its canonical declaration: one from before there was validation has no
// scores, and a file that leaves validation as it is by default, or off, declares that task.
func (s *Spec) CanonicalFor(standing []byte) ([]byte, error) {
	other, err := ParseDeclaration(standing)
	if err != nil || other.Validation != nil || s.Validation == nil {
		return s.Canonical()
	}
	if v := *s.Validation; !v.Off && v != (Validation{Weight: DefaultValidationWeight}) {
		return s.Canonical()
	}
	out := *s
	out.Validation = nil
	return out.Canonical()
}
