package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Canonical returns the one encoding of the declaration, which goes into the task hash: JSON without blanks, keys in
// the order of the types, defaults written out, numbers in their shortest exact form. It leaves out State, which
// concerns the learner alone. It returns an error for a Spec that Validate refuses.
func (s *Spec) Canonical() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	declared := *s
	declared.State = nil
	if err := e.Encode(declared); err != nil {
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

// ParseDeclaration reads the canonical form after another JSON document has carried it and may have changed its layout
// or escapes, for example a snapshot. For bytes that are signed or hashed use ParseCanonical.
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
	if err := validateWords(data); err != nil {
		return nil, err
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s, nil
}

// validateWords refuses a declaration that lacks a word for which decoding would use a default.
func validateWords(data []byte) error {
	var d struct {
		Privacy struct{ Trust, Coin, Profile *string }
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return fmt.Errorf("decode task: %w", err)
	}
	for path, word := range map[string]*string{"privacy.trust": d.Privacy.Trust, "privacy.coin": d.Privacy.Coin,
		"privacy.profile": d.Privacy.Profile} {
		if word == nil {
			return refuse(path, "", "a word: it is absent")
		}
	}
	return nil
}

// A Difference is a key, as written in a task file, with different values in two declarations. The values are JSON, cut
// to maxShown bytes, and empty if the key is absent.
type Difference struct {
	Key  string // such as privacy.epsilon, features.columns[2].max
	File string // in the first declaration, the one at hand
	Task string // in the second, the task's
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: file says %s, task has %s", d.Key, shown(d.File), shown(d.Task))
}

func shown(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

const (
	maxShown       = 60 // bytes of a value
	maxDifferences = 5  // that Differences names in a text
)

// Differences compares two declarations in canonical form, the file's and the task's, in the order of their keys. Data
// that are not JSON give one difference without a key.
func Differences(file, task []byte) []Difference {
	one, ok := leaves(file)
	other, also := leaves(task)
	if !ok || !also {
		if bytes.Equal(file, task) {
			return nil
		}
		return []Difference{{"declaration", cut(strconv.QuoteToASCII(string(file))), cut(strconv.QuoteToASCII(string(task)))}}
	}
	var out []Difference
	for key, value := range one {
		if other[key] != value {
			out = append(out, Difference{key, cut(value), cut(other[key])})
		}
	}
	for key, value := range other {
		if _, both := one[key]; !both {
			out = append(out, Difference{key, "", cut(value)})
		}
	}
	slices.SortFunc(out, func(a, b Difference) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// DifferenceText names the first differences in one line.
func DifferenceText(list []Difference) string {
	texts := make([]string, 0, maxDifferences+1)
	for i, d := range list {
		if i == maxDifferences {
			texts = append(texts, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		texts = append(texts, d.String())
	}
	return strings.Join(texts, "; ")
}

// leaves returns the scalar values of a JSON document by their dotted keys.
func leaves(data []byte) (map[string]string, bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return nil, false
	}
	out := map[string]string{}
	gather(out, "", doc)
	return out, true
}

func gather(out map[string]string, key string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, part := range v {
			name = strings.Trim(strconv.QuoteToASCII(name), `"`)
			if key != "" {
				name = key + "." + name
			}
			gather(out, name, part)
		}
	case []any:
		for i, part := range v {
			gather(out, key+"["+strconv.Itoa(i)+"]", part)
		}
	case string:
		out[key] = strconv.QuoteToASCII(v) // it may come from a peer and end in a terminal
	default:
		out[key] = fmt.Sprint(v)
	}
}

func cut(value string) string {
	if len(value) <= maxShown {
		return value
	}
	return value[:maxShown] + "..."
}
