package task

import (
	"encoding"
	"reflect"
	"strconv"
	"strings"
)

// decode fills the value from the node by the types of the fields and their json names. Keys that are absent leave
// what is there.
func decode(path string, n *node, v reflect.Value) error {
	fail := func(want string) error {
		return &FieldError{Line: n.line, Path: path, Value: n.describe(), Want: want}
	}
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if n.kind != scalar {
			return fail("a single value")
		}
		if err := t.UnmarshalText([]byte(n.text)); err != nil {
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
		return &FieldError{Line: n.line, Path: path, Value: n.describe(), Want: "a mapping with keys " + strings.Join(keysOf(v.Type()), ", ")}
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
