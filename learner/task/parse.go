package task

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/panlearn/panlearn/randomizer/accounting"
)

// maxFile bounds a task file; the largest vocabularies are far below it.
const maxFile = 1 << 20

// Load reads and parses the task file at path, with overrides as in Parse, and reads the files that it names: the
// snapshot that it starts from and its public model.
func Load(path string, sets []string) (*Spec, error) {
	return load(path, func(data []byte) (*Spec, error) { return Parse(data, sets) })
}

func load(path string, parse func(data []byte) (*Spec, error)) (*Spec, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read task file: %w", err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("read task file: %s has %d bytes, want at most %d", path, info.Size(), maxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read task file: %w", err)
	}
	s, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := s.readFiles(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Parse reads a task in YAML. Each of sets is an override "path.to.key=value": the path is dotted, list positions count
// from 0, the value is YAML; later ones win. The result is complete (defaults filled in) and valid. Refusals are of
// type *FieldError.
func Parse(data []byte, sets []string) (*Spec, error) {
	root, err := overridden(data, sets)
	if err != nil {
		return nil, err
	}
	s, err := declared(root)
	if err == nil && s.Schedule.Curated() { // one silo, as in LoadTogether
		return nil, s.Schedule.notCurated()
	}
	return s, err
}

// overridden returns the tree of a file with overrides in it.
func overridden(data []byte, sets []string) (*node, error) {
	if len(data) > maxFile {
		return nil, &FieldError{Value: fmt.Sprint(len(data)), Want: fmt.Sprintf("at most %d bytes", maxFile)}
	}
	root, err := parseTree(data)
	for _, set := range sets {
		if err == nil {
			err = override(root, set)
		}
	}
	return root, err
}

// declared returns the declaration in a tree, complete and valid.
func declared(root *node) (*Spec, error) {
	s := &Spec{Intercept: 1}
	if err := decode("", root, reflect.ValueOf(s).Elem()); err != nil {
		return nil, err
	}
	s.SetDefaults()
	if err := s.Validate(); err != nil {
		var f *FieldError
		if errors.As(err, &f) {
			f.Absent = f.Path != "" && root.at(f.Path) == nil
		}
		return nil, err
	}
	return s, nil
}

// at returns the node at a dotted path, or nil.
func (n *node) at(path string) *node {
	for key := range strings.SplitSeq(path, ".") {
		switch i, err := strconv.Atoi(key); {
		case n == nil:
			return nil
		case n.kind == mapping:
			n = n.child(key)
		case n.kind == list && err == nil && i >= 0 && i < len(n.values):
			n = n.values[i]
		default:
			return nil
		}
	}
	return n
}

// override sets one value in the tree. It creates missing mappings, but no list elements: an unknown key is refused
// later, when the tree is decoded.
func override(root *node, set string) error {
	path, value, ok := strings.Cut(set, "=")
	path = strings.TrimSpace(path)
	if !ok || path == "" {
		return refuse("--set", set, "path.to.key=value")
	}
	n := root
	keys := strings.Split(path, ".")
	for depth, key := range keys {
		at := strings.Join(keys[:depth+1], ".")
		if key == "" || depth >= maxDepth {
			return refuse("--set", set, "path.to.key=value")
		}
		last := depth == len(keys)-1
		var slot *node
		switch n.kind {
		case mapping:
			if slot = n.child(key); slot == nil {
				slot = &node{kind: mapping}
				n.keys = append(n.keys, key)
				n.values = append(n.values, slot)
			}
		case list:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(n.values) {
				return refuse("--set", at, "a list position from 0 to %d", len(n.values)-1)
			}
			slot = n.values[i]
		default:
			return refuse("--set", at, "a path that does not go through a single value")
		}
		if last {
			v, err := parseValue(value)
			if err != nil {
				return fmt.Errorf("--set %s: %w", shorten(path), err)
			}
			*slot = *v
		}
		n = slot
	}
	return nil
}

// parseValue reads the right side of an override. Text that is no YAML value by itself, such as >50K, is taken
// as it is.
func parseValue(text string) (*node, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, &FieldError{Want: "a value"}
	}
	if strings.ContainsAny(text[:1], "[{\"'") {
		return parseTree([]byte(text))
	}
	return &node{text: text}, nil
}

var errNotFinite = errors.New("not a finite number")

// parseFinite reads a decimal number and refuses NaN, infinities and what would overflow.
func parseFinite(text string) (float64, error) {
	f, err := parseNumber(text)
	if math.IsNaN(f) {
		return 0, errNotFinite
	}
	return f, err
}

// parseNumber is like parseFinite, but also reads NaN. Hexadecimal, which Go would take, is refused: a client
// in another language must read the same rows as valid.
func parseNumber(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || strings.ContainsAny(text, "xX_") {
		return 0, errNotFinite
	}
	return f, nil
}

// decode fills the value from the node by the types of the fields and their json names. Absent keys leave their fields
// unchanged.
func decode(path string, n *node, v reflect.Value) error {
	fail := func(want string) error {
		return &FieldError{Line: n.line, Path: path, Value: n.describe(), Want: want}
	}
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if n.kind != scalar {
			return fail("a single value")
		}
		if err := t.UnmarshalText([]byte(n.text)); err != nil {
			if choice, ok := errors.AsType[*accounting.ChoiceError](err); ok {
				return fail(choice.Want)
			}
			return fail(err.Error())
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return decode(path, n, v.Elem())
	case reflect.Struct:
		return decodeStruct(path, n, v)
	case reflect.Slice:
		if n.kind != list {
			return fail("a list")
		}
		// Left nil where the list is empty, so that absent and empty are the same declaration.
		for i, c := range n.values {
			e := reflect.New(v.Type().Elem()).Elem()
			if err := decode(join(path, strconv.Itoa(i)), c, e); err != nil {
				return err
			}
			v.Set(reflect.Append(v, e))
		}
		return nil
	}
	if n.kind != scalar {
		return fail("a single value")
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.text)
	case reflect.Bool:
		if n.quoted || (n.text != "true" && n.text != "false") {
			return fail("true or false")
		}
		v.SetBool(n.text == "true")
	case reflect.Int:
		i, err := strconv.ParseInt(n.text, 10, strconv.IntSize)
		if n.quoted || err != nil {
			return fail("a whole number")
		}
		v.SetInt(i)
	case reflect.Float64:
		f, err := parseFinite(n.text)
		if n.quoted || err != nil {
			return fail("a finite number")
		}
		v.SetFloat(f)
	default:
		panic("task: no decoding for " + v.Type().String() + " at " + path)
	}
	return nil
}

func decodeStruct(path string, n *node, v reflect.Value) error {
	if n.kind != mapping {
		return &FieldError{Line: n.line, Path: path, Value: n.describe(), Want: "a mapping with keys " +
			strings.Join(keysOf(v.Type()), ", ")}
	}
	known := keysOf(v.Type())
	for i, key := range n.keys {
		at := join(path, shorten(key))
		field := -1
		for f, k := range known {
			if k == key {
				field = f
			}
		}
		if field < 0 {
			return &FieldError{Line: n.values[i].line, Path: at, Want: "one of the keys " + strings.Join(known, ", ")}
		}
		if err := decode(at, n.values[i], v.Field(field)); err != nil {
			return err
		}
	}
	return nil
}

// keysOf lists the keys of a struct, in the order of its fields. Every field of a declaration has a json name.
func keysOf(t reflect.Type) []string {
	keys := make([]string, t.NumField())
	for i := range keys {
		keys[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return keys
}
