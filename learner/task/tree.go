package task

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// node is a YAML document reduced to what a task file may contain. Scalars keep their text: the type of the field
// decides what it means, so that a vocabulary may hold no, 1.0 or ~ without surprises.
type node struct {
	line   int
	kind   nodeKind
	text   string // of scalars
	quoted bool   // a scalar that was marked as text
	keys   []string
	values []*node // of mappings (as keys) and of lists
}

type nodeKind int

const (
	scalar nodeKind = iota
	mapping
	list
)

// maxDepth bounds nesting: no task needs more than a handful of levels.
const maxDepth = 16

// maxIndent bounds the nesting of blocks, which takes a column a level.
const maxIndent = 64

// describe shows the node in an error.
func (n *node) describe() string {
	switch n.kind {
	case mapping:
		return "a mapping"
	case list:
		return "a list"
	}
	return shorten(n.text)
}

// child returns the value of a key of a mapping, or nil.
func (n *node) child(key string) *node {
	for i, k := range n.keys {
		if k == key {
			return n.values[i]
		}
	}
	return nil
}

// parseTree reads one YAML document. An empty one is an empty mapping.
func parseTree(data []byte) (*node, error) {
	tokens := lexer.Tokenize(string(data))
	if err := validateTokens(tokens); err != nil {
		return nil, err
	}
	// Duplicates are found below, where the dotted path is known.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxError(err)
	}
	var root *node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if root != nil {
			return nil, &FieldError{Want: "one YAML document, not several"}
		}
		if root, err = reduce("", doc.Body, 0); err != nil {
			return nil, err
		}
	}
	if root == nil {
		root = &node{kind: mapping}
	}
	return root, nil
}

// validateTokens refuses what a task file must not contain and bounds the nesting, before the parser recurses into it: its
// memory grows with the square of the depth.
func validateTokens(tokens token.Tokens) error {
	flow, entries := 0, 0
	for _, t := range tokens {
		fail := func(want string) error { return &FieldError{Line: t.Position.Line, Want: want} }
		newLine := t.Prev == nil || t.Prev.Position.Line != t.Position.Line
		if newLine {
			entries = 0
			if t.Position.Column > maxIndent && flow == 0 {
				return fail(fmt.Sprintf("lines indented by less than %d columns", maxIndent))
			}
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType:
			entries++
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.MappingKeyType:
			return fail("plain YAML without anchors, aliases, tags, merges and ? keys")
		}
		if flow > maxDepth || entries > maxDepth {
			return fail(fmt.Sprintf("at most %d levels of nesting", maxDepth))
		}
	}
	return nil
}

// syntaxError keeps the first line of the parser's message: the rest is an excerpt of the file.
func syntaxError(err error) error {
	var s yaml.Error
	if errors.As(err, &s) {
		line := 0
		if t := s.GetToken(); t != nil && t.Position != nil {
			line = t.Position.Line
		}
		return &FieldError{Line: line, Want: "YAML: " + shorten(s.GetMessage())}
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("task: YAML: %s", shorten(first))
}

// reduce converts a parsed node, refusing what a task file must not contain.
func reduce(path string, n ast.Node, depth int) (*node, error) {
	line := lineOf(n)
	fail := func(value, want string) (*node, error) {
		return nil, &FieldError{Line: line, Path: path, Value: value, Want: want}
	}
	if depth > maxDepth {
		return fail("", fmt.Sprintf("at most %d levels of nesting", maxDepth))
	}
	switch n := n.(type) {
	case *ast.StringNode:
		quoted := n.Token.Type == token.SingleQuoteType || n.Token.Type == token.DoubleQuoteType
		return &node{line: line, text: n.Value, quoted: quoted}, nil
	case *ast.LiteralNode:
		return &node{line: line, text: n.Value.Value, quoted: true}, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return &node{line: line, text: n.GetToken().Value}, nil
	case *ast.NanNode, *ast.InfinityNode:
		return fail(n.GetToken().Value, "a finite number")
	case *ast.NullNode:
		return fail("null", "a value, or leave the key out")
	case *ast.SequenceNode:
		out := &node{line: line, kind: list}
		for i, v := range n.Values {
			c, err := reduce(join(path, fmt.Sprint(i)), v, depth+1)
			if err != nil {
				return nil, err
			}
			out.values = append(out.values, c)
		}
		return out, nil
	case *ast.MappingNode:
		out := &node{line: line, kind: mapping}
		for _, v := range n.Values {
			if err := out.add(path, v, depth); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *ast.MappingValueNode:
		out := &node{line: line, kind: mapping}
		if err := out.add(path, n, depth); err != nil {
			return nil, err
		}
		return out, nil
	}
	return fail("", "a scalar, a list or a mapping")
}

// add appends one key of a mapping.
func (n *node) add(path string, v *ast.MappingValueNode, depth int) error {
	if v.Key == nil || v.Value == nil || v.Key.IsMergeKey() {
		return &FieldError{Line: lineOf(v), Path: path, Want: "plain keys with a value"}
	}
	var key string
	switch k := v.Key.(type) {
	case *ast.StringNode:
		key = k.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		key = k.GetToken().Value
	default:
		return &FieldError{Line: lineOf(v), Path: path, Want: "plain keys with a value"}
	}
	at := join(path, shorten(key))
	if n.child(key) != nil {
		return &FieldError{Line: lineOf(v.Key), Path: at, Want: "each key once; this one is a duplicate"}
	}
	c, err := reduce(at, v.Value, depth+1)
	if err != nil {
		return err
	}
	n.keys = append(n.keys, key)
	n.values = append(n.values, c)
	return nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}
