package task

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Edit returns a task file with overrides, as in Parse, written into it and a comment added at its top. It keeps other
// comments and the order of keys; the layout may change a little. It returns an error if the result would not declare
// the same as Parse with these overrides.
func Edit(data []byte, sets []string, comment string) ([]byte, error) {
	want, err := Parse(data, sets)
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseBytes(data, parser.ParseComments)
	if err != nil {
		return nil, syntaxError(err)
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		for _, set := range sets {
			path, value, _ := strings.Cut(set, "=")
			if err := write(doc.Body, strings.Split(strings.TrimSpace(path), "."), strings.TrimSpace(value)); err != nil {
				return nil, fmt.Errorf("write %s: %w", shorten(path), err)
			}
		}
	}
	var out strings.Builder
	for line := range strings.Lines(comment) {
		fmt.Fprintf(&out, "# %s\n", strings.TrimRight(line, "\n"))
	}
	out.WriteString(strings.TrimRight(file.String(), "\n") + "\n")
	return []byte(out.String()), same(want, []byte(out.String()))
}

// same checks that a file has the expected declaration.
func same(want *Spec, file []byte) error {
	got, err := Parse(file, nil)
	if err != nil {
		return fmt.Errorf("write the task file: its layout cannot be kept: %w", err)
	}
	if !sameFile(want.Model.Start, got.Model.Start) || !sameFile(want.Features.Public.file(), got.Features.Public.file()) {
		return errors.New("write the task file: the files that it names are not what they were to be")
	}
	want.standIn() // they have no canonical form before they are read
	got.standIn()
	one, err := want.Canonical()
	if err != nil {
		return err
	}
	if other, err := got.Canonical(); err != nil || !bytes.Equal(one, other) {
		return errors.New("write the task file: its layout cannot be kept; use --set")
	}
	return nil
}

// write sets the value at a path below a mapping, and creates missing mappings.
func write(at ast.Node, keys []string, value string) error {
	if list, ok := at.(*ast.SequenceNode); ok {
		if i, err := strconv.Atoi(keys[0]); err == nil && i >= 0 && i < len(list.Values) {
			if len(keys) > 1 {
				return write(list.Values[i], keys[1:], value)
			}
			item, err := snippet([]string{"item"}, value)
			if err == nil {
				list.Values[i] = item.Value
			}
			return err
		}
	}
	values, column, flow := entries(at)
	if values == nil {
		return errors.New("want a path through mappings and lists, to a key of a mapping or an item of a list")
	}
	for _, v := range values {
		if v.Key.GetToken().Value != keys[0] {
			continue
		}
		if len(keys) > 1 {
			return write(v.Value, keys[1:], value)
		}
		entry, err := snippet(keys, value)
		if err != nil {
			return err
		}
		comment := v.Value.GetComment()
		v.Value = entry.Value
		if comment != nil {
			return v.Value.SetComment(comment)
		}
		return nil
	}
	entry, err := snippet(keys, value)
	if err != nil {
		return err
	}
	if !flow {
		entry.AddColumn(column - 1)
	}
	mapping, ok := at.(*ast.MappingNode)
	if !ok {
		return errors.New("a mapping of one key, to which none can be added")
	}
	mapping.Values = append(mapping.Values, entry)
	return nil
}

// entries returns the entries of a mapping, the column at which they begin, and whether it is written in braces. It
// returns no entries for another node.
func entries(n ast.Node) (values []*ast.MappingValueNode, column int, flow bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 {
			column = n.Values[0].Key.GetToken().Position.Column
		}
		return n.Values, column, n.IsFlowStyle
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, n.Key.GetToken().Position.Column, n.IsFlowStyle
	}
	return nil, 0, false
}

// snippet returns a new entry: the first key, whose value has the other keys in braces around the given value.
func snippet(keys []string, value string) (*ast.MappingValueNode, error) {
	text := keys[0] + ": "
	for _, key := range keys[1:] {
		text += "{" + key + ": "
	}
	file, err := parser.ParseBytes([]byte(text+value+strings.Repeat("}", len(keys)-1)), 0)
	if err != nil {
		return nil, syntaxError(err)
	}
	for _, doc := range file.Docs {
		if values, _, _ := entries(doc.Body); len(values) == 1 {
			return values[0], nil
		}
	}
	return nil, fmt.Errorf("%s is no value", shorten(value))
}
