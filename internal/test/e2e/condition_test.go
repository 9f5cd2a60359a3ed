package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// parseDocument reads exactly one JSON document. A number that is not finite as a float64 is an error.
func parseDocument(text string) (any, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("not a JSON document: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON document")
	}
	return doc, nil
}

// A scope holds the values that a condition is evaluated over.
type scope struct {
	ts  *testscript.TestScript
	doc any
}

// holds evaluates a condition over a document.
func holds(ts *testscript.TestScript, condition string, doc any) (bool, error) {
	v, err := evaluate(ts, condition, doc)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("condition %q is %v, not true or false", condition, v)
	}
	return b, nil
}

func evaluate(ts *testscript.TestScript, text string, doc any) (any, error) {
	expr, err := parser.ParseExpr(text)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	v, err := scope{ts, doc}.eval(expr)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return v, nil
}

func (s scope) eval(expr ast.Expr) (any, error) {
	switch e := expr.(type) {
	case *ast.ParenExpr:
		return s.eval(e.X)
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return strconv.Unquote(e.Value)
		}
		return strconv.ParseFloat(e.Value, 64)
	case *ast.Ident:
		switch e.Name {
		case "true", "false":
			return e.Name == "true", nil
		case "null":
			return nil, nil
		}
		return member(s.doc, e.Name)
	case *ast.SelectorExpr:
		x, err := s.eval(e.X)
		if err != nil {
			return nil, err
		}
		return member(x, e.Sel.Name)
	case *ast.IndexExpr:
		return s.index(e)
	case *ast.UnaryExpr:
		return s.unary(e)
	case *ast.BinaryExpr:
		return s.binary(e)
	case *ast.CallExpr:
		return s.call(e)
	}
	return nil, fmt.Errorf("%T is not understood", expr)
}

func member(x any, name string) (any, error) {
	object, ok := x.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: %T is not an object", name, x)
	}
	v, ok := object[name]
	if !ok {
		return nil, fmt.Errorf("no field %s", name)
	}
	return v, nil
}

func (s scope) index(e *ast.IndexExpr) (any, error) {
	x, err := s.eval(e.X)
	if err != nil {
		return nil, err
	}
	i, err := s.eval(e.Index)
	if err != nil {
		return nil, err
	}
	list, ok := x.([]any)
	at, number := i.(float64)
	if !ok || !number || at < 0 || int(at) >= len(list) {
		return nil, fmt.Errorf("no element %v of %T", i, x)
	}
	return list[int(at)], nil
}

func (s scope) unary(e *ast.UnaryExpr) (any, error) {
	x, err := s.eval(e.X)
	if err != nil {
		return nil, err
	}
	switch v := x.(type) {
	case bool:
		if e.Op == token.NOT {
			return !v, nil
		}
	case float64:
		if e.Op == token.SUB {
			return -v, nil
		}
	}
	return nil, fmt.Errorf("%v of %T", e.Op, x)
}

func (s scope) binary(e *ast.BinaryExpr) (any, error) {
	x, err := s.eval(e.X)
	if err != nil {
		return nil, err
	}
	if b, ok := x.(bool); ok && (e.Op == token.LAND && !b || e.Op == token.LOR && b) {
		return b, nil
	}
	y, err := s.eval(e.Y)
	if err != nil {
		return nil, err
	}
	switch e.Op {
	case token.LAND, token.LOR:
		if b, ok := y.(bool); ok {
			return b, nil
		}
	case token.EQL:
		return reflect.DeepEqual(x, y), nil
	case token.NEQ:
		return !reflect.DeepEqual(x, y), nil
	}
	a, isA := x.(float64)
	b, isB := y.(float64)
	if !isA || !isB {
		return nil, fmt.Errorf("%v of %T and %T", e.Op, x, y)
	}
	switch e.Op {
	case token.ADD:
		return a + b, nil
	case token.SUB:
		return a - b, nil
	case token.MUL:
		return a * b, nil
	case token.QUO:
		return a / b, nil
	case token.LSS:
		return a < b, nil
	case token.LEQ:
		return a <= b, nil
	case token.GTR:
		return a > b, nil
	case token.GEQ:
		return a >= b, nil
	}
	return nil, fmt.Errorf("operator %v is not understood", e.Op)
}

func (s scope) call(e *ast.CallExpr) (any, error) {
	name, ok := e.Fun.(*ast.Ident)
	if !ok || len(e.Args) == 0 {
		return nil, errors.New("this call is not understood")
	}
	args := make([]any, len(e.Args))
	for i, a := range e.Args {
		v, err := s.eval(a)
		if name.Name == "has" {
			return err == nil, nil
		}
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	switch x := args[0].(type) {
	case string:
		if name.Name == "file" {
			return parseDocument(s.ts.ReadFile(x))
		}
		if name.Name == "len" {
			return float64(len(x)), nil
		}
	case float64:
		if name.Name == "abs" {
			return math.Abs(x), nil
		}
	case map[string]any:
		if name.Name == "len" {
			return float64(len(x)), nil
		}
	case []any:
		return list(name.Name, x, args[1:])
	}
	return nil, fmt.Errorf("%s of %T is not understood", name.Name, args[0])
}

// list evaluates len(x), sum(x, "field", "where", equals) and sorted(x, "field"): strictly rising.
func list(name string, x, args []any) (any, error) {
	if name == "len" {
		return float64(len(x)), nil
	}
	var sum float64
	rising, last := true, math.Inf(-1)
	for _, one := range x {
		v, err := member(one, fmt.Sprint(args[0]))
		if err != nil {
			return nil, err
		}
		number, ok := v.(float64)
		if !ok {
			return nil, fmt.Errorf("%v is %T", args[0], v)
		}
		rising, last = rising && number > last, number
		if len(args) == 3 {
			if got, err := member(one, fmt.Sprint(args[1])); err != nil || !reflect.DeepEqual(got, args[2]) {
				continue
			}
		}
		sum += number
	}
	switch name {
	case "sum":
		return sum, nil
	case "sorted":
		return rising, nil
	}
	return nil, fmt.Errorf("%s of a list is not understood", name)
}
